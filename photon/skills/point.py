"""Point: one point on every object of a name."""

from __future__ import annotations

from photon.core import Point, Request
from photon.skills.grammar import Found, ObjectsGrammar
from photon.skills.skill import Script, SkillContext, object_prompt


def script(request: Request, context: SkillContext) -> Script:
    grammar = ObjectsGrammar(context.tokens, False, request.settings.max_objects, context.place_repetition())

    def point(found: Found) -> Point:
        x, y = context.coordinates[found.x], context.coordinates[found.y]
        score = found.score_exist * found.score_loc
        return Point(x, y, request.prompt, score, found.score_exist, found.score_loc)

    return Script(object_prompt(request, context), grammar, lambda: {"points": [point(f) for f in grammar.found]})
