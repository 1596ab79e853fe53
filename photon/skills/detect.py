"""Detect: boxes around every object of a name."""

from __future__ import annotations

from photon.core import Box, Request
from photon.skills.grammar import Found, ObjectsGrammar
from photon.skills.skill import Script, SkillContext, object_prompt


def script(request: Request, context: SkillContext) -> Script:
    grammar = ObjectsGrammar(context.tokens, True, request.settings.max_objects, context.place_repetition())

    def box(found: Found) -> Box:
        assert found.size is not None
        edges = context.box(found.x, found.y, found.size)
        score = found.score_exist * found.score_loc
        return Box(*edges, request.prompt, score, found.score_exist, found.score_loc)

    return Script(object_prompt(request, context), grammar, lambda: {"objects": [box(f) for f in grammar.found]})
