"""Opens the input that a manifest names, with its columns compared first, so that a wrong name tells its line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from photon.data.row import Source
from photon.data.unit import Unit
from photon.errors import UsageError
from photon.job.folder import OutputFolder, lies_in
from photon.manifest.columns import check_columns
from photon.manifest.input import Input, Urls
from photon.manifest.manifest import Manifest
from photon.manifest.problems import KeyPath, ManifestError
from photon.manifest.rules import SOURCES
from photon.plan.plan import Plan, Reader

if TYPE_CHECKING:
    from photon.data.grouped import GroupedFiles

#: Of ``reading_of``, what has to stay as it is even where the input's files do.
FIXED = ("image", "id", "urls.fetch")


def open_source(manifest: Manifest) -> Source:
    """The rows, unread. Raises ``ManifestError`` for a name that leads nowhere or for input that
    lies in the output folder, ``InputError`` for unreadable data."""
    spec = manifest.input
    try:
        source = _source(spec, spec.id, manifest.columns)
    except UsageError as error:
        _check_names(manifest)
        raise _placed(error, manifest) from error
    check_columns(manifest, source.schema)
    _check_places(manifest, source)
    return _fetched(source, spec.urls)


def open_planned(manifest: Manifest, plan: Plan, *, as_planned: bool = False) -> Source:
    """The rows of a plan, in the order of its units; no folder is listed and no hub asked. With ``as_planned``, a file
    that has changed since is an error when it is read. Raises like ``open_source``."""
    spec = manifest.input
    units = plan.units if as_planned else [replace(unit, stamp=None) for unit in plan.units]
    try:
        source = _reader(plan.reader, spec, units, manifest.columns)
    except UsageError as error:
        raise _placed(error, manifest) from error
    check_columns(manifest, source.schema)
    return _fetched(source, spec.urls)


def reader_of(manifest: Manifest, source: Source) -> Reader:
    """How the rows are read, as a plan says it."""
    spec = manifest.input
    if spec.hub is not None:
        inner = source.inner if hasattr(source, "inner") else source
        return "parquet" if getattr(inner, "is_parquet", False) else "stream"
    return "parquet" if spec.parquet else "arrow" if spec.arrow else "folder" if spec.folder else "webdataset"


def reading_of(manifest: Manifest) -> dict[str, Any]:
    """The manifest's words that decide what a row is, ``FIXED`` from run to run, and those that say which rows."""
    spec = manifest.input
    which = spec.model_dump(mode="json", include={*SOURCES, "split", "config", "revision", "options", "limit"})
    return {"image": spec.image, "id": spec.id, "urls.fetch": spec.urls.fetch, **which}


def _reader(reader: Reader, spec: Input, units: Sequence[Unit], columns: Sequence[str]) -> Source:
    if reader == "stream":
        return _source(spec, spec.id, columns)
    if reader == "folder":
        from photon.data.folder import FolderSource

        return FolderSource(spec.folder, image=spec.image, id=spec.id, columns=columns, units=units)
    return _files_source(reader, (), spec, spec.id, columns, units)


def _files_source(
    reader: Reader,
    names: Sequence[str],
    spec: Input,
    id: str | None,
    columns: Sequence[str],
    units: Sequence[Unit] | None = None,
) -> GroupedFiles:
    if reader == "parquet":
        from photon.data.parquet import ParquetSource

        return ParquetSource(names, image=spec.image, id=id, columns=columns, units=units)
    if reader == "arrow":
        from photon.data.arrow import ArrowSource

        return ArrowSource(names, image=spec.image, id=id, columns=columns, units=units)
    from photon.data.webdataset import WebDatasetSource

    return WebDatasetSource(names, image=spec.image, id=id, columns=columns, units=units)


def _fetched(source: Source, urls: Urls) -> Source:
    if not urls.fetch:
        return source
    from photon.data.download import FetchPolicy
    from photon.data.fetched import Fetched

    return Fetched(source, FetchPolicy(**urls.model_dump(exclude={"fetch"})))


def _check_places(manifest: Manifest, source: Source) -> None:
    """Results never go where the input lies: --fresh would remove it, and a next run take them for input."""
    root = OutputFolder(manifest.output.dir).root
    key = _source_key(manifest.input)
    for folder in _walked(manifest.input):
        if lies_in(root, folder):
            told = f"{folder} is searched for input, and output.dir, {root}, lies in it; choose another output.dir"
            raise _problem(manifest, key, told)
    # Of a folder, its own place says it all: there may be millions of pictures.
    for file in [os.path.expanduser(name) for name in manifest.input.folder] or source.files:
        if lies_in(file, root):
            told = f"{file} lies in output.dir, {root}, which is for results alone; choose another output.dir"
            raise _problem(manifest, key, told)


def _walked(spec: Input) -> list[str]:
    """The local folders all of whose files are looked at, by us or by a loader of ``datasets``."""
    names = (spec.hub, spec.options.get("data_dir"), *spec.folder)
    named = (os.path.expanduser(str(name)) for name in names if name)
    return [name for name in named if os.path.isdir(name)]


def check_trace(trace: Path, manifest: Manifest, source: Source) -> None:
    """Raises ``UsageError`` for a trace that would take the place of the results, the input or the manifest."""
    root = OutputFolder(manifest.output.dir).root
    if lies_in(trace, root):
        raise UsageError(f"{root} holds results and nothing else; write the trace somewhere else than {trace}")
    document = manifest.document
    precious = {os.path.realpath(file) for file in (*source.files, *([document.file] if document else []))}
    if os.path.realpath(trace) in precious:
        raise UsageError(f"{trace} is a file that this run reads; write the trace somewhere else")


def _check_names(manifest: Manifest) -> None:
    """Opens the images alone, to compare every other name with the columns that there are."""
    try:
        source = _source(manifest.input, None, ())
    except UsageError:
        return  # the images are what is wrong, and the caller tells it
    check_columns(manifest, source.schema)


def _source(spec: Input, id: str | None, columns: Sequence[str]) -> Source:
    if spec.parquet:
        return _files_source("parquet", spec.parquet, spec, id, columns)
    if spec.arrow:
        return _files_source("arrow", spec.arrow, spec, id, columns)
    if spec.webdataset:
        return _files_source("webdataset", spec.webdataset, spec, id, columns)
    if spec.folder:
        from photon.data.folder import FolderSource

        return FolderSource(spec.folder, image=spec.image, id=id, columns=columns)
    from photon.data.hub import HubSource

    assert spec.hub is not None  # the manifest's rules: exactly one of them
    return HubSource(
        spec.hub,
        split=spec.split or "train",
        revision=spec.revision,
        config=spec.config,
        options=spec.options,
        image=spec.image,
        id=id,
        columns=columns,
    )


def _placed(error: UsageError, manifest: Manifest) -> ManifestError:
    """What a source found wrong, with the line of the key that it is about."""
    spec = manifest.input
    path = ("input", "image") if f"column {spec.image!r}" in str(error) else _source_key(spec)
    return _problem(manifest, path, str(error))


def _source_key(spec: Input) -> KeyPath:
    return "input", next(name for name in SOURCES if getattr(spec, name))


def _problem(manifest: Manifest, path: KeyPath, message: str) -> ManifestError:
    return manifest.wrong([(path, message)])
