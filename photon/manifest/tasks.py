"""The tasks of a manifest: what is asked of every row, and how.

Each task knows its prompts as templates and the settings that its requests carry; it asks nothing itself.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, field_validator

from photon.core import SpatialRef
from photon.manifest.section import Section, Text, several
from photon.manifest.template import Template

_NAME = re.compile(r"[\w-]+")


def _parses(text: str) -> str:
    if not text.strip():
        raise ValueError("it is blank, and nothing would be asked; write what to ask")
    Template.parse(text)
    return text


Prompt: TypeAlias = Annotated[Text, AfterValidator(_parses)]
_OneOrMore = Text | Annotated[list[Text], Field(min_length=1)]
_UNIT = Annotated[float, Field(ge=0, le=1)]
_SPATIAL_REF = tuple[_UNIT, _UNIT] | tuple[_UNIT, _UNIT, _UNIT, _UNIT]


def _pairs(value: Any) -> Any:
    """Lists of numbers as the tuples that ``core.Settings`` holds; one reference may stand without outer brackets."""
    if not isinstance(value, (list, tuple)):
        return value
    if value and not isinstance(value[0], (list, tuple)):
        value = [value]
    return tuple(tuple(ref) if isinstance(ref, list) else ref for ref in value)


_SpatialRefs = Annotated[
    tuple[_SPATIAL_REF, ...],
    BeforeValidator(_pairs, json_schema_input_type=_SPATIAL_REF | tuple[_SPATIAL_REF, ...]),
]


class TaskBase(Section):
    """What all tasks share. ``name`` is the result's column."""

    kind: ClassVar[Literal["text", "objects", "points"]]
    name: Text = Field(title="The result's column", description="a name for the result's column, for example cars")
    adapter: Text | None = Field(
        default=None,
        title="The adapter that answers",
        description="the name of one of model.adapters, or null for none",
    )

    @field_validator("name")
    @classmethod
    def _is_word(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} cannot name a column; use letters, digits, _ and - alone")
        return name

    @property
    @abstractmethod
    def prompts(self) -> tuple[str | None, ...]:
        """One per request, as written; None for a task without a prompt."""

    @property
    def templates(self) -> tuple[Template | None, ...]:
        """``prompts``, parsed."""
        return tuple(None if prompt is None else Template.parse(prompt) for prompt in self.prompts)

    @property
    def columns(self) -> tuple[str, ...]:
        """The input columns that the prompts name, each once."""
        named = (column for template in self.templates if template for column in template.columns)
        return tuple(dict.fromkeys(named))

    @property
    def shows_reasoning(self) -> bool:
        """Whether an answer comes with the reasoning that led to it."""
        return False

    def settings(self) -> dict[str, Any]:
        """The keywords of ``core.Request`` that this task sets, the seed aside."""
        return self.model_dump(exclude={"name", "type", "question", "objects"})


class TextTask(TaskBase):
    """A task that is answered in words."""

    kind: ClassVar[Literal["text", "objects", "points"]] = "text"
    max_tokens: int = Field(default=768, ge=1, title="The longest answer", description="an integer of at least 1")
    temperature: float = Field(
        default=0.0,
        ge=0,
        allow_inf_nan=False,
        title="0 takes the likeliest token; above 0, tokens are drawn, repeatably by run.seed",
        description="a number of at least 0",
    )
    top_p: float = Field(
        default=1.0,
        gt=0,
        le=1,
        title="Draw from the likeliest that have this much of the probability together",
        description="a number above 0 and at most 1",
    )
    top_k: int = Field(
        default=0, ge=0, title="And from so many at most; 0 is no limit", description="an integer of at least 0"
    )


class CaptionTask(TextTask):
    type: Literal["caption"] = Field(title="A description", description="caption")
    length: Literal["short", "normal", "long"] = Field(
        default="normal", title="How much is said", description="short, normal or long"
    )

    @property
    def prompts(self) -> tuple[str | None, ...]:
        return (None,)


class QueryTask(TextTask):
    type: Literal["query"] = Field(title="An answer to a question", description="query")
    question: Prompt = Field(
        title="What is asked; {column} is filled from each row, {{ and }} are the braces themselves",
        description="a question as text, for example What is in the picture?",
    )
    reasoning: bool = Field(
        default=False, title="Let the model write down its reasoning first", description="true or false"
    )
    spatial_refs: _SpatialRefs = Field(
        default=(),
        title="Places that the question is about",
        description="points [x, y] or boxes [x_min, y_min, x_max, y_max] with values from 0 to 1",
    )

    @property
    def prompts(self) -> tuple[str | None, ...]:
        return (self.question,)

    @property
    def shows_reasoning(self) -> bool:
        return self.reasoning

    def settings(self) -> dict[str, Any]:
        refs: tuple[SpatialRef, ...] = self.spatial_refs
        return {**super().settings(), "spatial_refs": refs}


class ObjectsTask(TaskBase):
    """A task that looks for named objects: one request for each name, one merged list of answers."""

    objects: Annotated[tuple[Prompt, ...], BeforeValidator(several, json_schema_input_type=_OneOrMore)] = Field(
        min_length=1,
        title="What is looked for; {column} is filled from each row, {{ and }} are the braces themselves",
        description="names of objects, for example [car, bus]",
    )
    max_objects: int = Field(
        default=50, ge=1, title="How many are looked for at most, for each name", description="an integer of at least 1"
    )

    @field_validator("objects")
    @classmethod
    def _differ(cls, objects: tuple[str, ...]) -> tuple[str, ...]:
        twice = next((name for i, name in enumerate(objects) if name in objects[:i]), None)
        if twice is not None:
            raise ValueError(f"{twice!r} is listed twice; keep one of them")
        return objects

    @property
    def prompts(self) -> tuple[str | None, ...]:
        return self.objects


class DetectTask(ObjectsTask):
    type: Literal["detect"] = Field(title="Boxes", description="detect")
    kind: ClassVar[Literal["text", "objects", "points"]] = "objects"


class PointTask(ObjectsTask):
    type: Literal["point"] = Field(title="Points", description="point")
    kind: ClassVar[Literal["text", "objects", "points"]] = "points"


Task: TypeAlias = CaptionTask | QueryTask | DetectTask | PointTask
TASK_TYPES: dict[str, type[Task]] = {
    "caption": CaptionTask,
    "query": QueryTask,
    "detect": DetectTask,
    "point": PointTask,
}
