"""Caption: a description of the picture, short, normal or long."""

from __future__ import annotations

from photon.core import Request
from photon.errors import RowError
from photon.skills.grammar import TextGrammar
from photon.skills.skill import Prompt, Script, SkillContext
from photon.skills.text import answer_text


def script(request: Request, context: SkillContext) -> Script:
    """Raises ``RowError`` SKILL_UNSUPPORTED for a length that the checkpoint does not know."""
    template = context.template("caption")
    length = request.settings.length
    if length not in template:
        known = ", ".join(template)
        raise RowError("SKILL_UNSUPPORTED", f"this model has no {length} captions; it has {known}")
    grammar = text_grammar(request, context)
    return Script(
        Prompt(list(template[length]), {}, {}),
        grammar,
        lambda: {"text": answer_text(context.tokenizer, grammar.tokens)},
    )


def text_grammar(request: Request, context: SkillContext) -> TextGrammar:
    """Text whose answer token is banned after the first (a rule of the generation that has one)."""
    tokens = context.tokens
    bans = (tokens.answer_id,) if tokens.grounded else ()
    return TextGrammar(tokens.eos_id, request.settings.max_tokens, bans, context.text_repetition())
