"""The skills by name."""

from __future__ import annotations

from collections.abc import Callable

from photon.core import Request, SkillName
from photon.skills import caption, detect, point, query
from photon.skills.skill import Script, SkillContext

_SCRIPTS: dict[SkillName, Callable[[Request, SkillContext], Script]] = {
    "caption": caption.script,
    "query": query.script,
    "detect": detect.script,
    "point": point.script,
}


def script_for(request: Request, context: SkillContext) -> Script:
    """The request's prompt, grammar and parser. Raises ``RowError`` when the model cannot serve it."""
    return _SCRIPTS[request.skill](request, context)
