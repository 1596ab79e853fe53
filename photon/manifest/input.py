"""The input of a manifest: which rows, which of their columns, and what becomes of URLs. Nothing is opened here."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from photon.manifest.section import Section, Text, Texts


class Urls(Section):
    """Whether and how image cells that hold URLs are fetched; the words of ``photon.data.download``."""

    fetch: bool = Field(
        default=False,
        title="Fetch image cells that hold http(s) URLs; false makes them rows that fail",
        description="true or false",
    )
    parallel: int = Field(default=16, ge=1, le=256, title="Downloads at a time", description="an integer from 1 to 256")
    timeout: float = Field(
        default=30.0,
        gt=0,
        allow_inf_nan=False,
        title="How long one attempt may take",
        description="seconds, a number above 0",
    )
    retries: int = Field(
        default=4,
        ge=0,
        title="Further attempts, if the server is busy or does not answer",
        description="an integer of at least 0",
    )
    max_wait: float = Field(
        default=60.0,
        ge=0,
        allow_inf_nan=False,
        title="The longest pause that a server may ask for between two attempts",
        description="seconds, a number of at least 0",
    )
    max_bytes: int = Field(
        default=100_000_000,
        ge=1,
        title="Larger pictures fail as IMAGE_TOO_LARGE",
        description="an integer of at least 1",
    )


class Input(Section):
    """Where the rows come from: exactly one of ``parquet``, ``arrow``, ``folder``, ``webdataset`` and ``hub``."""

    parquet: Texts = Field(
        default=(),
        title="Parquet files; hf:// URLs name their revision",
        description="files or globs, for example [data/*.parquet]",
    )
    arrow: Texts = Field(
        default=(),
        title="Arrow files, or what save_to_disk wrote",
        description="files or globs, or one folder that save_to_disk wrote",
    )
    folder: Texts = Field(
        default=(),
        title="Every picture in it, at any depth; columns: file_name, folder",
        description="a folder of pictures, for example photos",
    )
    webdataset: Texts = Field(
        default=(),
        title="Tars; files of one key make a row; columns: __key__, txt, cls, json.caption ...",
        description="tars or globs, for example [shards/*.tar]",
    )
    hub: Text | None = Field(
        default=None,
        title="Whatever the datasets package can load",
        description="a dataset's hub id, or a loader such as imagefolder",
    )
    split: Text | None = Field(
        default=None, title="Goes with hub; null is train", description="a split of the hub data set, for example train"
    )
    revision: Text | None = Field(
        default=None, title="Goes with hub: what a later run reads again", description="a revision of the hub data set"
    )
    config: Text | None = Field(default=None, title="Goes with hub", description="a configuration of the hub data set")
    options: dict[str, Any] = Field(
        default={}, title="Goes with hub: passed on to the loader", description="a mapping of the loader's options"
    )
    image: Text = Field(
        default="image",
        title="The images: bytes, a {bytes, path} struct, or a path",
        description="the name of the column that holds the images",
    )
    id: Text | None = Field(
        default=None,
        title="Names a row in the results; null: its place, file:row_group:row",
        description="the name of a column that identifies a row",
    )
    keep: Texts = Field(
        default=(),
        title="Columns that are carried along into the results",
        description="names of columns to carry along, for example [camera_id]",
    )
    limit: int | None = Field(
        default=None, ge=1, title="Read only so many rows", description="a number of rows, or null for all"
    )
    urls: Urls = Field(
        default=Urls(), title="Image cells that hold URLs", description="a mapping, for example {fetch: true}"
    )
