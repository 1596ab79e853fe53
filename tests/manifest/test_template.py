from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from photon.errors import RowError
from photon.manifest.template import Template


@pytest.mark.parametrize(
    ("text", "columns", "filled"),
    [
        ("no columns", (), "no columns"),
        ("Is a {brand} {brand} near {place}?", ("brand", "place"), "Is a Fiat Fiat near 7?"),
        ("{{brand}} is {brand}", ("brand",), "{brand} is Fiat"),
        ("{{{brand}}}", ("brand",), "{Fiat}"),
        ("{two words}", ("two words",), "{brand}"),
    ],
)
def test_filling(text: str, columns: tuple[str, ...], filled: str) -> None:
    template = Template.parse(text)
    assert template.columns == columns
    assert template.fill({"brand": "Fiat", "place": 7, "two words": "{brand}"}) == filled


@pytest.mark.parametrize("text", ["{", "a } b", "{}", "{a{b}", "x {{{ y"])
def test_stray_braces_are_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not part of a \{column\}; close the braces, or write (\{\{|\}\}) for"):
        Template.parse(text)


@pytest.mark.parametrize(
    ("value", "code"), [(None, "PROMPT_NULL"), ("", "PROMPT_EMPTY"), (" \n", "PROMPT_EMPTY")]
)  # fmt: skip
def test_rows_without_a_usable_value(value: Any, code: str) -> None:
    with pytest.raises(RowError) as caught:
        Template.parse("{brand}").fill({"brand": value})
    assert caught.value.code == code


@given(st.text())
def test_doubled_braces_give_any_text_back(text: str) -> None:
    doubled = text.replace("{", "{{").replace("}", "}}")
    template = Template.parse(doubled)
    assert template.columns == ()
    if text.strip():
        assert template.fill({}) == text
