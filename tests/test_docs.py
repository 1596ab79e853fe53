"""The pages tell the truth: links, paths, commands, manifests, codes and make targets exist as they are written."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import typer

import photon.manifest.load
from photon.cli import app
from photon.errors import PhotonError, RowError
from photon.manifest.load import load_manifest
from photon.manifest.manifest import Manifest
from photon.manifest.paths import missing_paths
from tests.docs.pages import NAMES, ROOT, anchors, blocks, commands, inline_code, links, section, table, text_of

#: Commands are looked for in these, and in blocks that name no language.
SHELLS = ("", "sh")
COMMANDS: Any = typer.main.get_command(app)
#: A path of the repository, wherever it is mentioned; one with a star names at least one file.
MENTIONED = re.compile(r"(?<![\w/.~-])(?:docs|manifests|benchmarks|photon|tests|training|jobs)/[\w./*-]*[\w*]")
#: In the place of what a fragment of a manifest leaves out.
STUB = {
    "version": "1",
    "input": "{folder: photos}",
    "model": "{path: photon://null}",
    "tasks": "[{name: cap, type: caption}]",
    "output": "{dir: out}",
}


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    dead = []
    for target in links(text_of(name)):
        path, _, anchor = target.partition("#")
        page = (ROOT / name).parent / path if path else ROOT / name
        if not page.exists() or (anchor and anchor not in anchors(page.read_text(encoding="utf-8"))):
            dead.append(target)
    assert not dead


@pytest.mark.parametrize("name", NAMES)
def test_paths_exist(name: str) -> None:
    gone = [path for path in set(MENTIONED.findall(text_of(name))) if next(ROOT.glob(path), None) is None]
    assert not gone


def parse(arguments: list[str]) -> None:
    """As the program would take them, short of doing it. Raises what a wrong command line raises."""
    command, name = COMMANDS, "photon-batch"
    while arguments and arguments[0] in getattr(command, "commands", ()):
        name, *arguments = arguments
        command = command.commands[name]
    with contextlib.suppress(typer.Exit):  # --help and --version
        command.make_context(name, list(arguments))
    assert not getattr(command, "commands", ()) or not arguments or arguments[0].startswith("-"), arguments


@pytest.mark.parametrize("name", NAMES)
def test_commands_parse(name: str) -> None:
    for block in blocks(text_of(name), *SHELLS):
        for arguments in commands(block.text):
            try:
                parse(arguments)
            except Exception as error:  # whose class is typer's own in some versions and click's in others
                message = error.format_message() if hasattr(error, "format_message") else repr(error)
                pytest.fail(f"{name}:{block.line}: photon-batch {' '.join(arguments)}: {message}")


@pytest.mark.parametrize("arguments", [["rum", "m.yaml"], ["run"], ["run", "m.yaml", "--shards", "2"]])
def test_a_wrong_command_is_noticed(arguments: list[str]) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011  see above
        parse(arguments)


@pytest.mark.parametrize("name", NAMES)
def test_options_in_the_text_exist(name: str) -> None:
    """Of what the prose calls ``photon-batch COMMAND --option``, arguments or not."""
    for code in inline_code(text_of(name)):
        called, *words = code.split()
        if called != "photon-batch" or words[:1] == ["COMMAND"]:
            continue
        command = COMMANDS
        while words and hasattr(command, "commands"):
            assert words[0] in command.commands, code
            command = command.commands[words.pop(0)]
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        assert {word for word in words if word.startswith("-") and word != "-"} <= known | {"--help"}, code


class Anything(dict[str, str]):
    """An environment in which every variable is set."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return "anything"

    def get(self, name: str, default: Any = None) -> Any:
        return self[name]


def load(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Manifest:
    """A manifest by all its rules but one: paths need not exist. A fragment is filled up with ``STUB``."""

    def lacking_a_revision(data: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
        return (found for found in missing_paths(data) if "as a hub id" in found[1])

    monkeypatch.setattr(photon.manifest.load, "missing_paths", lacking_a_revision)
    given = set(re.findall(r"^(\w+):", text, re.MULTILINE))
    path = folder / "m.yaml"
    path.write_text(text + "".join(f"\n{key}: {stub}" for key, stub in STUB.items() if key not in given))
    return load_manifest(path, environment=Anything())


@pytest.mark.parametrize("name", NAMES)
def test_manifests_are_in_order(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for block in blocks(text_of(name), "yaml"):
        if any(line.strip() and not line.lstrip().startswith("#") for line in block.text.splitlines()):
            try:
                load(block.text, tmp_path, monkeypatch)
            except PhotonError as error:
                pytest.fail(f"{name}:{block.line}: {error}")


def test_a_wrong_manifest_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load("input: {parquet: gone.parquet}", tmp_path, monkeypatch).input.parquet == ("gone.parquet",)
    for wrong in ("input: {folders: photos}", "version: 2", "model: {path: owner/name}", "errors: {min_rows: -1}"):
        with pytest.raises(PhotonError):
            load(wrong, tmp_path, monkeypatch)


#: What makes a failed row's code its first argument.
_MAKERS = {"RowError", "Failure", "Refused"} | {made.__name__ for made in RowError.__subclasses__()}


def codes_of(node: ast.expr, module: ast.Module) -> set[str]:
    """The codes that an expression can be. What is taken over from an error, or from a row, is none of its own."""
    match node:
        case ast.Constant(value=str(code)):
            return {code}
        case ast.IfExp(body=body, orelse=orelse):
            return codes_of(body, module) | codes_of(orelse, module)
        case ast.BoolOp(values=values):
            return set().union(*(codes_of(value, module) for value in values))
        case ast.Attribute(attr="code") | ast.Subscript():
            return set()
        case ast.Name(id=name):
            return codes_named(name, module)
    raise AssertionError(f"teach this test to find the codes of {ast.unparse(node)}")


def codes_named(name: str, module: ast.Module) -> set[str]:
    """The codes that a name of ``module`` is given, there or in the module that it is imported from."""
    given = []
    for node in ast.walk(module):
        assert not (isinstance(node, ast.arg) and node.arg == name), f"teach this test to find the codes of {name}"
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            given.append(codes_of(node.value, module))
        elif isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
            path = ROOT / f"{(node.module or '').replace('.', '/')}.py"
            given.append(codes_named(name, ast.parse(path.read_text(encoding="utf-8"))))
    assert given, f"teach this test to find the codes of {name}"
    return set().union(*given)


def codes_in(module: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(module):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in _MAKERS:
            first = node.args[0] if node.args else next(k.value for k in node.keywords if k.arg == "code")
            found |= codes_of(first, module)
    return found


def codes_in_source() -> set[str]:
    found: set[str] = set()
    for path in (ROOT / "photon").rglob("*.py"):
        found |= codes_in(ast.parse(path.read_text(encoding="utf-8")))
    return found


def test_codes_are_found_wherever_they_come_from() -> None:
    source = """
POISON = "A_NAME"
raise ImageError("A_PLAIN" if gone else "AN_OTHER", "why")
code = cells["error_code"] or "A_DEFAULT"
errors.RowError(code=code, message="why")
Failure(POISON, ""), Refused(error.code, "")
"""
    assert codes_in(ast.parse(source)) == {"A_NAME", "A_PLAIN", "AN_OTHER", "A_DEFAULT"}
    with pytest.raises(AssertionError, match="teach this test"):
        codes_in(ast.parse("Failure(made_up(), '')"))


def test_every_code_is_explained_and_every_explained_code_exists() -> None:
    page = text_of("docs/troubleshooting.md")
    explained = [row[0] for heading in ("Failed rows", "Only when looking") for row in table(section(page, heading))]
    assert sorted(explained) == sorted(codes_in_source())


def exit_codes() -> set[int]:
    from photon.cli.tell import INTERRUPTED
    from photon.job.stop import PREEMPTED
    from photon.job.summary import OVER_BUDGET

    classes = [PhotonError]
    for known in classes:
        classes += known.__subclasses__()
    errors = {known.exit_code for known in classes}
    return errors | {0, INTERRUPTED, PREEMPTED, OVER_BUDGET}


def test_every_exit_code_is_explained() -> None:
    rows = table(section(text_of("docs/troubleshooting.md"), "Exit codes"))
    assert [int(row[0]) for row in rows] == sorted(exit_codes())


def test_make_targets_exist() -> None:
    makefile = text_of("Makefile")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert set(re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split()) == targets  # type: ignore[index]
    for name in NAMES:
        text = text_of(name)
        shell = "\n".join(block.text for block in blocks(text, *SHELLS))
        called = re.findall(r"^make ([a-z-]+)", shell, re.MULTILINE)
        called += [target for code in inline_code(text) for target in re.findall(r"^make ([a-z-]+)", code)]
        assert set(called) <= targets, name


def test_the_index_names_every_page() -> None:
    listed = {target.partition("#")[0] for target in links(text_of("docs/README.md"))}
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages <= listed
