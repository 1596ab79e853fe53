"""Generated ids to the text that a reader gets.

The reference streams: it decodes what it holds, and lets go of everything at a newline or a CJK character and of
whole words at a space. For well-formed UTF-8 that adds up to decoding all ids at once; where bytes are malformed the
pieces count, so then they are replayed.
"""

from __future__ import annotations

from collections.abc import Sequence

from photon.models.tokenizer import Tokenizer

_MALFORMED = "\ufffd"
_CJK = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x2F800, 0x2FA1F))


def answer_text(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """The answer as the reference would have streamed it, joined."""
    text = tokenizer.decode(ids)
    return "".join(_streamed(tokenizer, ids)) if _MALFORMED in text else text


def _streamed(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    pieces: list[str] = []
    held: list[int] = []
    given = 0  # characters of the held ids' text that have been given out
    for token in ids:
        held.append(token)
        text = tokenizer.decode(held)
        if text.endswith("\n"):
            pieces.append(text[given:])
            held, given = [], 0
            continue
        upto = len(text) if text and _is_cjk(text[-1]) else text.rfind(" ", given) + 1
        if upto > given:
            pieces.append(text[given:upto])
            given = upto
    if held:
        pieces.append(tokenizer.decode(held)[given:])
    return pieces


def _is_cjk(character: str) -> bool:
    return any(low <= ord(character) <= high for low, high in _CJK)
