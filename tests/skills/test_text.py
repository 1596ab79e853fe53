"""The streamed text against the reference's pieces, and against plain decoding where bytes are well formed."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from photon.models.tokenizer import Tokenizer
from photon.skills.text import _streamed, answer_text
from tests.reference import IMAGES, TINY, outputs

TOKENIZER = Tokenizer.load(TINY)


def test_the_references_pieces() -> None:
    for name in IMAGES:
        run = outputs()["images"][name]["runs"]["query"]
        assert _streamed(TOKENIZER, run["tokens"]) == run["text_pieces"]
        assert answer_text(TOKENIZER, run["tokens"]) == run["text"]


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.sampled_from("ab \n,é語文字🙂"), max_size=24))
def test_well_formed_text_streams_to_itself(text: str) -> None:
    ids = TOKENIZER.encode(text)
    assert "".join(_streamed(TOKENIZER, ids)) == TOKENIZER.decode(ids) == text
