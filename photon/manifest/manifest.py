"""The manifest, version 1: what is read, by which model, what is asked and where the answers go.

Values only: ``load`` reads them from a file, ``columns`` compares them with the input. Built in Python, a manifest
is held to the same rules; pydantic's ``ValidationError`` tells what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, PrivateAttr, field_validator, model_validator

from photon.manifest.document import Document
from photon.manifest.input import Input
from photon.manifest.problems import KeyPath, ManifestError
from photon.manifest.rules import broken_rules
from photon.manifest.section import Auto, Section, Text, listed
from photon.manifest.tasks import Task


class Model(Section):
    path: Text = Field(
        title="The weights", description="a folder, a hub id, photon://shapes, photon://tiny or photon://null"
    )
    revision: Text | None = Field(default=None, title="Needed for a hub id", description="the hub model's revision")
    tokenizer: Text | None = Field(
        default=None, title="Where the model's own folder has none", description="a tokenizer's folder, file or hub id"
    )
    tokenizer_revision: Text | None = Field(
        default=None, title="Needed for a tokenizer's hub id", description="the hub tokenizer's revision"
    )
    dtype: Literal["auto", "float32", "bfloat16"] = Field(
        default="auto",
        title="What the model computes in; auto follows the device",
        description="auto, float32 or bfloat16",
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        default="auto", title="What the model runs on", description="auto, cpu or cuda"
    )
    adapters: dict[Text, Text] = Field(
        default={},
        title="LoRA adapters, by the names that tasks call them",
        description="a mapping of names to files, for example {cars: cars.safetensors}",
    )
    adapter_semantics: Literal["merged", "reference"] | None = Field(
        default=None,
        title="How adapters are read: W + BA, or as published code reads them",
        description="merged, reference, or null to follow decision",
    )


class ImagePolicy(Section):
    """How encoded bytes become pixels; the words of ``photon.images``."""

    exif: Literal["apply", "ignore"] = Field(
        default="apply", title="Turn photos upright by their EXIF orientation", description="apply or ignore"
    )
    alpha_background: Text = Field(
        default="white", title="What shows through transparent pixels", description="a colour, for example white"
    )
    max_pixels: int = Field(
        default=180_000_000, ge=1, title="Larger images fail as IMAGE_TOO_LARGE", description="an integer of at least 1"
    )
    scale_16bit: Literal["full_range", "min_max"] = Field(
        default="full_range",
        title="How 16 bits become 8: by their full range, or by each image's own",
        description="full_range or min_max",
    )
    decode: Literal["exact", "fast"] = Field(
        default="exact",
        title="fast decodes large JPEGs smaller, with a faster resampler: docs/pixels.md",
        description="exact or fast",
    )

    @field_validator("alpha_background")
    @classmethod
    def _is_colour(cls, name: str) -> str:
        from PIL import ImageColor

        try:
            ImageColor.getrgb(name)
        except ValueError:
            raise ValueError(f'{name!r} is no colour; write a name such as white, or "#ffffff" in quotes') from None
        return name


class EngineOptions(Section):
    max_batch: Auto | Annotated[int, Field(ge=1)] = Field(
        default="auto", title="Requests that are worked on at once", description="auto or an integer of at least 1"
    )
    adapter_slots: Auto | Annotated[int, Field(ge=1)] = Field(
        default="auto",
        title="Adapters on the device at a time; auto is all, 8 at most",
        description="auto or an integer of at least 1",
    )
    graphs: Auto | bool = Field(
        default="auto",
        title="Capture steps as CUDA graphs; auto is wherever the device can",
        description="auto, true or false",
    )
    depth: int = Field(
        default=2, ge=1, le=2, title="2 prepares a step while the device runs the one before", description="1 or 2"
    )
    memory_fraction: float = Field(
        default=0.9,
        gt=0,
        le=1,
        title="How much of the device's free memory may be used",
        description="a number above 0 and at most 1",
    )
    stall_timeout: float = Field(
        default=300.0,
        gt=0,
        allow_inf_nan=False,
        title="Without a finished step for so long, the run ends with exit code 70",
        description="seconds, a number above 0",
    )
    decision: Literal["masked", "reference"] = Field(
        default="masked",
        title='How point and detect choose between "one more" and "done"',
        description="masked or reference",
    )
    stop_repetition: bool | None = Field(
        default=None,
        title="End an answer that goes round in circles",
        description="true, false, or null to follow decision",
    )

    @property
    def stops_repetition(self) -> bool:
        """By default only the reference decision lets an answer go round in circles, as the reference does."""
        return self.decision != "reference" if self.stop_repetition is None else self.stop_repetition


class Output(Section):
    dir: Text = Field(
        title="Where the results go", description="a folder of its own for the results, for example outputs/cars"
    )
    chunk_rows: Auto | Annotated[int, Field(ge=1)] = Field(
        default="auto", title="Rows to a part file", description="auto or an integer of at least 1"
    )
    ipc: Literal["file", "stream"] = Field(
        default="file",
        title="The form of the part files: pyarrow.dataset reads file, Dataset.from_file stream",
        description="file or stream",
    )

    @field_validator("dir")
    @classmethod
    def _is_path(cls, name: str) -> str:
        if "\0" in name:
            raise ValueError(f"{name!r} holds a NUL character, which no path can; leave it out")
        return name


class Errors(Section):
    """How many rows may fail. From ``min_rows`` on, a run that is bound to end over the rate is stopped early."""

    max_failure_rate: float = Field(
        default=0.01,
        ge=0,
        le=1,
        title="With more failed rows than this share, the run ends with exit code 3",
        description="a number from 0 to 1",
    )
    min_rows: int = Field(
        default=200,
        ge=0,
        title="After so many rows, a run that is bound to end over that rate is stopped early",
        description="an integer of at least 0",
    )


class Run(Section):
    seed: int = Field(default=0, title="Drawn tokens repeat with the same one", description="an integer")


class Manifest(Section):
    """The whole file. ``document`` remembers the lines that it was read from, None for one built in Python."""

    # Not Literal[1]: to that, true and 1.0 are 1.
    version: int = Field(ge=1, le=1, title="The form of this file", description="1")
    input: Input = Field(
        title="Where the images are", description="a mapping with the data in it, for example parquet: [data/*.parquet]"
    )
    model: Model = Field(title="What answers", description="a mapping with path in it")
    tasks: Annotated[tuple[Annotated[Task, Field(discriminator="type")], ...], BeforeValidator(listed)] = Field(
        min_length=1,
        title="What is asked of every image",
        description="a list of tasks, for example - {name: cap, type: caption}",
    )
    image: ImagePolicy = Field(default=ImagePolicy(), title="How encoded bytes become pixels", description="a mapping")
    engine: EngineOptions = Field(default=EngineOptions(), title="How the work is done", description="a mapping")
    output: Output = Field(title="Where the results go", description="a mapping with dir in it")
    errors: Errors = Field(default=Errors(), title="How many rows may fail", description="a mapping")
    run: Run = Field(default=Run(), title="The run as a whole", description="a mapping")

    _document: Document | None = PrivateAttr(None)

    @model_validator(mode="after")
    def _keeps_rules(self) -> Self:
        broken = [f"{'.'.join(map(str, path))}: {message}" for path, message in broken_rules(self.model_dump())]
        if broken:
            raise ValueError("; ".join(broken))
        return self

    @property
    def document(self) -> Document | None:
        return self._document

    def with_document(self, document: Document) -> Self:
        """The same manifest, knowing where its keys stand."""
        made = self.model_copy()
        made._document = document
        return made

    def wrong(self, found: Iterable[tuple[KeyPath, str]]) -> ManifestError:
        """The error to raise for what was ``found``: (key path, what is wrong and what to do)."""
        document = self._document or Document("manifest")
        return ManifestError(document.file, [document.problem(path, message) for path, message in found])

    def with_limit(self, limit: int) -> Self:
        """The same manifest, reading at most ``limit`` rows."""
        return self.model_copy(update={"input": self.input.model_copy(update={"limit": limit})})

    @property
    def adapter_semantics(self) -> Literal["merged", "reference"]:
        """By default only the reference decision has adapters read as the reference reads them."""
        follows: Literal["merged", "reference"] = "reference" if self.engine.decision == "reference" else "merged"
        return self.model.adapter_semantics or follows

    @property
    def columns(self) -> tuple[str, ...]:
        """The input columns that are carried along or named in prompts, each once."""
        named = [column for task in self.tasks for column in task.columns]
        return tuple(dict.fromkeys([*self.input.keep, *named]))
