"""Query: a question about the picture (or about none), with places it refers to and reasoning if asked for."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from photon.core import Grounding, Reasoning, Request
from photon.errors import RowError
from photon.skills.caption import text_grammar
from photon.skills.grammar import ReasoningGrammar
from photon.skills.skill import Prompt, Script, SkillContext
from photon.skills.text import answer_text


def script(request: Request, context: SkillContext) -> Script:
    """Raises ``RowError`` SKILL_UNSUPPORTED for references or reasoning with a checkpoint that has no ids for them."""
    settings = request.settings
    if (settings.spatial_refs or settings.reasoning) and not context.tokens.grounded:
        raise RowError("SKILL_UNSUPPORTED", "this model's generation knows neither spatial references nor reasoning")
    prompt = query_prompt(request, context)
    answer = text_grammar(request, context)
    if not settings.reasoning:
        return Script(prompt, answer, lambda: {"text": answer_text(context.tokenizer, answer.tokens)})
    grammar = ReasoningGrammar(context.tokens, answer, settings.max_tokens)
    return Script(prompt, grammar, lambda: _parse_reasoned(grammar, context))


def query_prompt(request: Request, context: SkillContext) -> Prompt:
    """Template prefix, references, question, suffix; without an image, BOS comes first.

    The current generation was trained with the suffix twice before a plain answer, and with the thinking id in the
    second one's place before reasoning; the older one has the suffix once and a space before the question.
    """
    tokens, template = context.tokens, context.template("query")
    ids = [] if request.image is not None else [tokens.bos_id]
    ids += template["prefix"]
    coordinates: dict[int, float] = {}
    sizes: dict[int, tuple[float, float]] = {}
    for ref in request.settings.spatial_refs:
        centre = ref if len(ref) == 2 else ((ref[0] + ref[2]) / 2, (ref[1] + ref[3]) / 2)
        for value in centre:
            coordinates[len(ids)] = value
            ids.append(tokens.coord_id)
        if len(ref) == 4:
            sizes[len(ids)] = (ref[2] - ref[0], ref[3] - ref[1])
            ids.append(tokens.size_id)
    ids += context.tokenizer.encode(request.prompt if tokens.grounded else " " + request.prompt)
    ids += template["suffix"]
    if request.settings.reasoning:
        ids.append(tokens.thinking_id)
    elif tokens.grounded:
        ids += template["suffix"]
    return Prompt(ids, coordinates, sizes)


def _parse_reasoned(grammar: ReasoningGrammar, context: SkillContext) -> dict[str, Any]:
    """The reasoning's text, in chunks that a grounding id opens; a chunk with two coordinates or more is grounded."""
    openers = (context.tokens.start_ground_points_id, context.tokens.end_ground_id)
    cuts = [0, *(i for i, token in enumerate(grammar.thoughts) if token in openers), len(grammar.thoughts)]
    text, grounding = "", []
    for start, stop in pairwise(cuts):
        chunk = context.tokenizer.decode(grammar.thoughts[start:stop])
        values = [context.coordinates[grammar.coordinates[i]] for i in range(start, stop) if i in grammar.coordinates]
        points = tuple(zip(values[::2], values[1::2], strict=False))
        if points:
            grounding.append(Grounding(len(text), len(text) + len(chunk), points))
        text += chunk
    answer = answer_text(context.tokenizer, grammar.answer.tokens)
    return {"text": answer, "reasoning": Reasoning(text, tuple(grounding))}
