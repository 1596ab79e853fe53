"""The manifest, version 1: what is read, by which model, what is asked and where the answers go.

Values only: ``load`` reads them from a file, ``columns`` compares them with the input. Built in Python, a manifest
is held to the same rules; pydantic's ``ValidationError`` tells what is wrong.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, PrivateAttr, field_validator, model_validator

from photon.manifest.document import Document
from photon.manifest.rules import broken_rules
from photon.manifest.section import Auto, Section, Text, Texts, listed
from photon.manifest.tasks import Task


class Urls(Section):
    """Whether and how image cells that hold URLs are fetched; the words of ``photon.data.download``."""

    fetch: bool = Field(default=False, description="true or false")
    parallel: int = Field(default=16, ge=1, le=256, description="an integer from 1 to 256")
    timeout: float = Field(default=30.0, gt=0, description="seconds, a number above 0")
    retries: int = Field(default=4, ge=0, description="an integer of at least 0")
    max_wait: float = Field(default=60.0, ge=0, description="seconds, a number of at least 0")
    max_bytes: int = Field(default=100_000_000, ge=1, description="an integer of at least 1")


class Input(Section):
    """Where the rows come from: exactly one of ``parquet``, ``arrow``, ``folder``, ``webdataset`` and ``hub``."""

    parquet: Texts = Field(default=(), description="files or globs, for example [data/*.parquet]")
    arrow: Texts = Field(default=(), description="files or globs, or one folder that save_to_disk wrote")
    folder: Texts = Field(default=(), description="a folder of pictures, for example photos")
    webdataset: Texts = Field(default=(), description="tars or globs, for example [shards/*.tar]")
    hub: Text | None = Field(default=None, description="a dataset's hub id, or a loader such as imagefolder")
    split: Text | None = Field(default=None, description="a split of the hub data set, for example train")
    revision: Text | None = Field(default=None, description="a revision of the hub data set")
    config: Text | None = Field(default=None, description="a configuration of the hub data set")
    options: dict[str, Any] = Field(default={}, description="a mapping of the loader's options")
    image: Text = Field(default="image", description="the name of the column that holds the images")
    id: Text | None = Field(default=None, description="the name of a column that identifies a row")
    keep: Texts = Field(default=(), description="names of columns to carry along, for example [camera_id]")
    limit: int | None = Field(default=None, ge=1, description="a number of rows, or null for all")
    urls: Urls = Field(default=Urls(), description="a mapping, for example {fetch: true}")


class Model(Section):
    path: Text = Field(description="a folder, a hub id, photon://shapes, photon://tiny or photon://null")
    revision: Text | None = Field(default=None, description="the hub model's revision")
    tokenizer: Text | None = Field(default=None, description="a tokenizer's folder, file or hub id")
    tokenizer_revision: Text | None = Field(default=None, description="the hub tokenizer's revision")
    dtype: Literal["auto", "float32", "bfloat16"] = Field(default="auto", description="auto, float32 or bfloat16")
    device: Literal["auto", "cpu", "cuda"] = Field(default="auto", description="auto, cpu or cuda")
    adapters: dict[Text, Text] = Field(
        default={}, description="a mapping of names to files, for example {cars: cars.safetensors}"
    )
    adapter_semantics: Literal["merged", "reference"] | None = Field(
        default=None, description="merged, reference, or null to follow decision"
    )


class ImagePolicy(Section):
    """How encoded bytes become pixels; the words of ``photon.images``."""

    exif: Literal["apply", "ignore"] = Field(default="apply", description="apply or ignore")
    alpha_background: Text = Field(default="white", description="a colour, for example white")
    max_pixels: int = Field(default=180_000_000, ge=1, description="an integer of at least 1")
    scale_16bit: Literal["full_range", "min_max"] = Field(default="full_range", description="full_range or min_max")
    decode: Literal["exact", "fast"] = Field(default="exact", description="exact or fast")

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
        default="auto", description="auto or an integer of at least 1"
    )
    adapter_slots: Auto | Annotated[int, Field(ge=1)] = Field(
        default="auto", description="auto or an integer of at least 1"
    )
    graphs: Auto | bool = Field(default="auto", description="auto, true or false")
    depth: Literal[1, 2] = Field(default=2, description="1 or 2")
    memory_fraction: float = Field(default=0.9, gt=0, le=1, description="a number above 0 and at most 1")
    stall_timeout: float = Field(default=300.0, gt=0, description="seconds, a number above 0")
    decision: Literal["masked", "reference"] = Field(default="masked", description="masked or reference")
    stop_repetition: bool | None = Field(default=None, description="true, false, or null to follow decision")

    @property
    def stops_repetition(self) -> bool:
        """By default only the reference decision lets an answer go round in circles, as the reference does."""
        return self.decision != "reference" if self.stop_repetition is None else self.stop_repetition


class Output(Section):
    dir: Text = Field(description="a folder of its own for the results, for example outputs/cars")
    chunk_rows: Auto | Annotated[int, Field(ge=1)] = Field(
        default="auto", description="auto or an integer of at least 1"
    )
    ipc: Literal["file", "stream"] = Field(default="file", description="file or stream")

    @field_validator("dir")
    @classmethod
    def _is_path(cls, name: str) -> str:
        if "\0" in name:
            raise ValueError(f"{name!r} holds a NUL character, which no path can; leave it out")
        return name


class Errors(Section):
    """How many rows may fail. From ``min_rows`` on, a run that is bound to end over the rate is stopped early."""

    max_failure_rate: float = Field(default=0.01, ge=0, le=1, description="a number from 0 to 1")
    min_rows: int = Field(default=200, ge=0, description="an integer of at least 0")


class Run(Section):
    seed: int = Field(default=0, description="an integer")


class Manifest(Section):
    """The whole file. ``document`` remembers the lines that it was read from, None for one built in Python."""

    version: Literal[1] = Field(description="1")
    input: Input = Field(description="a mapping with the data in it, for example parquet: [data/*.parquet]")
    model: Model = Field(description="a mapping with path in it")
    tasks: Annotated[tuple[Annotated[Task, Field(discriminator="type")], ...], BeforeValidator(listed)] = Field(
        min_length=1, description="a list of tasks, for example - {name: cap, type: caption}"
    )
    image: ImagePolicy = Field(default=ImagePolicy(), description="a mapping")
    engine: EngineOptions = Field(default=EngineOptions(), description="a mapping")
    output: Output = Field(description="a mapping with dir in it")
    errors: Errors = Field(default=Errors(), description="a mapping")
    run: Run = Field(default=Run(), description="a mapping")

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
