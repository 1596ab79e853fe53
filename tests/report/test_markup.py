"""HTML that user data cannot break out of."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from photon.report.markup import Markup, element, join

NASTY = [
    "</p><script>alert(1)</script>",
    '" onmouseover="alert(1)',
    "' x='",
    "a & b &lt; c",
    "<!--",
    "]]>",
    "日本\u202eabc",
]


class Reader(HTMLParser):
    """What a browser would make of it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("text", NASTY)
def test_texts_and_attributes_come_back_as_they_were(text: str) -> None:
    read = Reader(element("p", text, title=text))
    assert read.tags == [("p", {"title": text})]
    assert read.text == text


def test_attributes() -> None:
    made = element("input", class_="a", data_t=0, aria_hidden="true", hidden=True, checked=False, id=None)
    assert made == '<input class="a" data-t="0" aria-hidden="true" hidden>'


def test_markup_is_left_as_it_is() -> None:
    assert element("p", element("b", "<"), None, "<") == "<p><b>&lt;</b>&lt;</p>"
    assert join(["a<", Markup("<i>")]) == "a&lt;<i>"


def test_what_html_cannot_write() -> None:
    assert element("p", "a\0b\x1b\tc\n\x85") == "<p>a\ufffdb\ufffd\tc\n\ufffd</p>"
