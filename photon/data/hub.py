"""Rows of whatever ``datasets`` can load: a hub id, or a local loader such as "imagefolder", "json" or "webdataset".

A data set that is all Parquet is resolved to its files, which ``ParquetSource`` reads: in less memory, with real
positions and a count. Anything else is streamed, with decoding off, so that a corrupt picture is a row like any other.
Nothing is downloaded but what a hub id or a URL in the options names. Code from the hub is never run.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count, islice
from typing import Any

import pyarrow as pa

from photon.data.columns import Columns
from photon.data.files import is_remote, read_remote, reading
from photon.data.parquet import ParquetSource
from photon.data.patience import patiently
from photon.data.row import Row, RowRef
from photon.data.unit import Unit
from photon.errors import InputError, PhotonError, UsageError

_OURS = ("path", "name", "split", "revision", "streaming", "trust_remote_code", "cache_dir")


class HubSource:
    """A ``Source`` over one split of a data set.

    ``name`` is a hub id, which needs a ``revision`` (a commit sha or a tag), or a local folder or the name of a loader,
    which take none. ``options`` go to ``datasets.load_dataset`` (data_dir, data_files ...), ``config`` is its ``name``.
    Columns as in ``ParquetSource``. Raises ``UsageError`` for what the user has to correct, ``InputError`` where the
    data set is not found, needs a login or cannot be reached.
    """

    def __init__(
        self,
        name: str,
        *,
        split: str,
        revision: str | None = None,
        config: str | None = None,
        options: Mapping[str, Any] | None = None,
        image: str,
        id: str | None = None,
        columns: Sequence[str] = (),
    ) -> None:
        options = dict(options or {})
        _check_arguments(name, revision, options)
        with _loading(name):
            builder = patiently(lambda: _builder(name, config, revision, options), name)
            files = _parquet_files(builder, split) if options.keys() <= {"data_dir", "data_files"} else []
            dataset = None if files else patiently(lambda: builder.as_streaming_dataset(split=split), name)
            self._files = _local_files(builder)
        if files:
            self._source: ParquetSource | _StreamedSource = ParquetSource(files, image=image, id=id, columns=columns)
        else:
            label = f"{name}@{revision}/{split}" if revision else f"{name}/{split}"
            self._source = _StreamedSource(label, dataset, Columns(image, id, tuple(columns)))

    @property
    def schema(self) -> pa.Schema:
        return self._source.schema

    @property
    def files(self) -> Sequence[str]:
        return self._files

    def count(self) -> int | None:
        return self._source.count()

    def units(self, known: Mapping[str, Unit] | None = None) -> list[Unit]:
        return self._source.units(known)

    @property
    def is_parquet(self) -> bool:
        """Whether the data set is read as Parquet files, which ``units`` names."""
        return isinstance(self._source, ParquetSource)

    def rows(self, limit: int | None = None, *, start: int = 0) -> Iterator[Row]:
        return self._source.rows(limit, start=start)


class _StreamedSource:
    """Rows of a ``datasets.IterableDataset``, as one group. ``label`` stands for its file."""

    def __init__(self, label: str, dataset: Any, columns: Columns) -> None:
        with reading(label):
            # Where a loader does not know its features, this looks at the first rows. There is no public name for it.
            dataset = dataset._resolve_features()
            self.schema: pa.Schema = dataset.features.arrow_schema
        columns.check(self.schema, label)
        self._dataset = dataset.decode(False).select_columns(columns.needed)
        self._label = label
        self._columns = columns

    def count(self) -> None:
        return None  # what a data set's card says is not always so

    def units(self, known: Mapping[str, Unit] | None = None) -> list[Unit]:
        return [Unit(self._label, None)]

    def rows(self, limit: int | None = None, *, start: int = 0) -> Iterator[Row]:
        with reading(self._label):
            examples = islice(self._dataset, start, None if limit is None else start + limit)
        for index in count(start):
            with reading(f"row {index} of {self._label}"):
                cells = next(examples, None)
                if cells is None:
                    return
                cells[self._columns.image] = _fetched(cells[self._columns.image])
            yield self._columns.row(index, RowRef(self._label, 0, index), cells, folder="")


def _fetched(cell: Any) -> Any:
    """An image cell with its bytes, where the loader gave the place on the hub, or in an archive, where they are."""
    if not isinstance(cell, Mapping) or cell.get("bytes") is not None or "://" not in (cell.get("path") or ""):
        return cell
    place: str = cell["path"]
    if not place.split("::")[-1].startswith(("hf://", "/", "file://")):
        return cell  # somewhere else on the network, which the manifest does not name
    try:
        return {"bytes": read_remote(place), "path": place}
    except FileNotFoundError:
        return cell  # the row will say that it is missing


def _check_arguments(name: str, revision: str | None, options: Mapping[str, Any]) -> None:
    for key in _OURS:
        if key in options:
            raise UsageError(f"{key!r} cannot be an option of the loader: it is set by the input, or never")
    if _is_local(name):
        if revision is not None:
            raise UsageError(f"{name!r} is local and has no revision: leave it out")
    elif name.startswith((".", "/", "~")):
        raise UsageError(f"there is no folder {name!r}: correct the path in the input")
    elif revision is None:
        raise UsageError(
            f"{name!r} is not a folder here, so it is taken for a hub id, which needs a revision: "
            "a commit sha or a tag, so that every run reads the same rows"
        )


def _is_local(name: str) -> bool:
    if os.path.isdir(os.path.expanduser(name)):
        return True
    if "/" in name:  # no loader
        return False
    from datasets.packaged_modules import _PACKAGED_DATASETS_MODULES

    return name in _PACKAGED_DATASETS_MODULES


def _builder(name: str, config: str | None, revision: str | None, options: Mapping[str, Any]) -> Any:
    import datasets

    # Else every load, even of a local folder, reports itself to a server.
    datasets.config.HF_UPDATE_DOWNLOAD_COUNTS = False
    # An empty cache: when the hub cannot be reached, an earlier download would do, of whatever revision.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
        return datasets.load_dataset_builder(
            os.path.expanduser(name), config, revision=revision, cache_dir=cache, **options
        )


def _parquet_files(builder: Any, split: str) -> list[str]:
    """The files of a split that is all Parquet, else none."""
    from datasets.packaged_modules.parquet.parquet import Parquet

    if not isinstance(builder, Parquet):
        return []
    return [str(file) for file in (builder.config.data_files or {}).get(split, ())]


def _local_files(builder: Any) -> list[str]:
    """The files of every split that are on this machine."""
    splits = (builder.config.data_files or {}).values()
    return [str(file) for files in splits for file in files if not is_remote(str(file))]


@contextmanager
def _loading(name: str) -> Iterator[None]:
    """What ``datasets`` says by raising: a wrong request is the user's to correct, anything else is the input's."""
    try:
        yield
    except (PhotonError, MemoryError):
        raise
    except Exception as error:
        local = _is_local(name)
        # A wrong split, config or option; a data set that is a script; a local file that is not there.
        asked = isinstance(error, (ValueError, TypeError, RuntimeError, ImportError))
        if asked or (local and isinstance(error, FileNotFoundError)):
            raise UsageError(f"cannot load {name!r} as asked: {error}") from error
        advice = "check the files" if local else "check id, revision and network, or log in (hf auth login)"
        raise InputError(f"cannot load {name!r}: {error} ({type(error).__name__}); {advice}") from error
