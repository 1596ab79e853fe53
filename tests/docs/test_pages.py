"""The reader of pages: what it finds on one that has everything, so that the other tests look at something."""

from __future__ import annotations

from tests.docs import pages

PAGE = """\
# One page

A [link](other.md#part-two), ![a picture](images/x.png) and [the web](https://example.org); `[no](link.md)` and
`photon-batch run
m.yaml --limit 2`.

## `decode: exact | fast`
## Twice
## Twice

```sh
photon-batch init photos  # photos
OUT=x photon-batch run m.yaml \\
  --set 'tasks.0.objects=[car, bus]' | tee log
for n in 1 2; do .venv/bin/photon-batch status "out $n"; done
```

```
photon-batch: error: none
# no heading, [no](link.md)
```

| key | what |
|---|---|
| `a` | |
| b | `c \\| d` |
"""


def test_links_and_code_of_the_prose_alone() -> None:
    assert pages.links(PAGE) == ["other.md#part-two", "images/x.png"]
    assert "photon-batch run m.yaml --limit 2" in pages.inline_code(PAGE)


def test_anchors_are_those_of_github() -> None:
    assert pages.anchors(PAGE) == {"one-page", "decode-exact--fast", "twice", "twice-1"}


def test_blocks_by_language() -> None:
    assert [(block.line, block.language) for block in pages.blocks(PAGE)] == [(11, "sh"), (18, "")]
    assert [block.line for block in pages.blocks(PAGE, "")] == [18]


def test_commands_in_all_their_shapes() -> None:
    shell, shown = pages.blocks(PAGE)
    assert list(pages.commands(shell.text)) == [
        ["init", "photos"],
        ["run", "m.yaml", "--set", "tasks.0.objects=[car, bus]"],
        ["status", "out $n"],
    ]
    assert list(pages.commands(shown.text)) == []


def test_tables_and_sections() -> None:
    assert pages.table(PAGE) == [["a", ""], ["b", "c \\| d"]]
    assert pages.section(PAGE, "`decode: exact | fast`") == ""
    assert pages.section(PAGE, "Twice") == ""
