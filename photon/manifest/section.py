"""What every part of a manifest has in common: strict, frozen, no key that is not known.

A field's title says what it is, its description finishes the sentence "write …"; the loader builds its messages from
the description, the schema and the reference show both.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


class Section(BaseModel):
    """A mapping of the manifest."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def several(value: Any) -> Any:
    """A list as a tuple; a lone scalar as a tuple of one, so that people may leave the brackets out."""
    if isinstance(value, (list, tuple)):
        return tuple(value)
    return (value,)


def listed(value: Any) -> Any:
    """A list as a tuple, anything else as it is."""
    return tuple(value) if isinstance(value, list) else value


Auto: TypeAlias = Literal["auto"]
Text: TypeAlias = Annotated[str, Field(min_length=1)]
#: The schema has to be told that a lone text will do.
Texts: TypeAlias = Annotated[tuple[Text, ...], BeforeValidator(several, json_schema_input_type=Text | list[Text])]
