"""Opens the input that a manifest names, with its columns compared first, so that a wrong name tells its line."""

from __future__ import annotations

from collections.abc import Sequence

from photon.data.row import Source
from photon.errors import UsageError
from photon.job.columns import check_columns
from photon.job.manifest import Input, Manifest
from photon.job.problems import KeyPath, ManifestError, Problem


def open_source(manifest: Manifest) -> Source:
    """The rows, unread. Raises ``ManifestError`` for a name that leads nowhere, ``InputError`` for unreadable data."""
    spec = manifest.input
    try:
        source = _source(spec, spec.id, manifest.columns)
    except UsageError as error:
        _check_names(manifest)
        raise _placed(error, manifest) from error
    check_columns(manifest, source.schema)
    return source


def _check_names(manifest: Manifest) -> None:
    """Opens the images alone, to compare every other name with the columns that there are."""
    try:
        source = _source(manifest.input, None, ())
    except UsageError:
        return  # the images are what is wrong, and the caller tells it
    check_columns(manifest, source.schema)


def _source(spec: Input, id: str | None, columns: Sequence[str]) -> Source:
    if spec.parquet:
        from photon.data.parquet import ParquetSource

        return ParquetSource(spec.parquet, image=spec.image, id=id, columns=columns)
    if spec.arrow:
        from photon.data.arrow import ArrowSource

        return ArrowSource(spec.arrow, image=spec.image, id=id, columns=columns)
    from photon.data.hub import HubSource

    assert spec.hub is not None  # the manifest's rules: exactly one of the three
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
    spec, document = manifest.input, manifest.document
    kind = "parquet" if spec.parquet else "arrow" if spec.arrow else "hub"
    path: KeyPath = ("input", "image" if f"column {spec.image!r}" in str(error) else kind)
    line = document.line(path) if document else None
    return ManifestError(document.file if document else "manifest", [Problem(path, str(error), line)])
