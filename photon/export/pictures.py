"""The encoded pictures of a run's rows, read again from its input: what an export copies, links or embeds.

A picture that is no longer the one that the run saw ends the export: answers beside another picture would be wrong.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from photon.data.row import Row, Source
from photon.errors import InputError, RowError, UsageError
from photon.export.names import stem_and_suffix
from photon.images.decode import DecodePolicy, decode
from photon.images.header import open_header
from photon.job.again import for_pictures, manifest_of, reading_again
from photon.job.output import RunOutput
from photon.job.sources import open_source

_OTHERWISE = ", or export without pictures, --images none"
_SUFFIXES = {"JPEG": ".jpg", "MPO": ".jpg", "TIFF": ".tif", "JPEG2000": ".jp2"}
_JPEG = {"quality": 95, "subsampling": 0}  # 4:4:4: turning costs as little as a new JPEG can


@dataclass(frozen=True, slots=True)
class StoredPicture:
    """An encoded picture. ``path`` is where it lies on this machine, None where it came as bytes; ``is_baked``: it is
    not as it was in the input."""

    data: bytes
    path: str | None = None
    is_baked: bool = False

    def named(self, name: str) -> str:
        """``name`` with a suffix that tools know for a picture's."""
        stem, suffix = stem_and_suffix(name)
        if suffix and not self.is_baked:
            return name
        return f"{stem}{self._suffix()}"

    def put(self, place: Path, link: bool) -> None:
        """Writes, or links, the picture as ``place``. Raises ``UsageError`` where there is no file to link to."""
        if link:
            place.symlink_to(self.link)
        else:
            place.write_bytes(self.data)

    @property
    def link(self) -> str:
        """What to link to. Raises ``UsageError`` for a picture that is no file."""
        if self.path is None:
            raise UsageError("--images link needs pictures that are files, and these are bytes; say --images copy")
        return os.path.abspath(self.path)

    def _suffix(self) -> str:
        form = open_header(io.BytesIO(self.data), 1 << 62).format or "PNG"
        return _SUFFIXES.get(form, f".{form.lower()}")


class Pictures:
    """Pictures of rows that are asked for in the output's order, which is the input's: it is read beside it, once."""

    def __init__(self, output: RunOutput, bake: bool = False) -> None:
        manifest = manifest_of(output)
        self._root = output.root
        self._policy = replace(DecodePolicy(**manifest.image.model_dump()), exif="apply", decode="exact")
        self._bake = bake
        with reading_again(self._root, _OTHERWISE):
            self._source: Source = open_source(for_pictures(manifest))
        self._rows: Iterator[Row] = self._source.rows()

    def read(self, row: Mapping[str, Any]) -> StoredPicture:
        """The picture of an output row. Raises ``InputError``."""
        with reading_again(self._root, _OTHERWISE):
            data, path = self._encoded(row)
            was = row["image"]["sha256"]
            if was is not None and hashlib.sha256(data).hexdigest() != was:
                raise InputError(f"row {row['row_id']}: the picture is not the one that the run saw")
            if not self._bake or row["image"]["exif_orientation"] == 1:
                return StoredPicture(data, path)
            return StoredPicture(_baked(data, self._policy), None, is_baked=True)

    def _encoded(self, row: Mapping[str, Any]) -> tuple[bytes, str | None]:
        found = self._row(row)
        if found.image is None:
            raise InputError(f"row {row['row_id']}: the image cell is null now")
        source = found.image.source
        if isinstance(source, bytes):
            return source, None
        try:
            path = os.fspath(source)
            return Path(path).read_bytes(), path
        except (OSError, RowError) as error:
            raise InputError(f"row {row['row_id']}: {error}") from error

    def _row(self, row: Mapping[str, Any]) -> Row:
        """Reads on to the place that an output row came from; rows between are ones that failed. What lies behind is
        looked for from the start: a file that grew between two runs has its later rows at the end of the output."""
        place = row["source"]
        for rows in (self._rows, self._source.rows()):
            self._rows = rows
            for found in rows:
                ref = found.ref
                if (ref.file, ref.row_group, ref.row) == (place["file"], place["row_group"], place["row"]):
                    if found.row_id != row["row_id"]:
                        raise InputError(f"row {row['row_id']}: the input holds another row there now, {found.row_id}")
                    return found
        raise InputError(f"row {row['row_id']}: the input does not hold it any more")


def _baked(data: bytes, policy: DecodePolicy) -> bytes:
    """The picture turned as it is meant to be seen, without the tag: a JPEG again, else a PNG. Its colour profile
    stays where pixels keep their meaning."""
    header = open_header(io.BytesIO(data), policy.max_pixels)
    rgb, info = decode(data, policy)
    profile = header.info.get("icc_profile") if info.mode == "RGB" else None
    options: dict[str, Any] = {"icc_profile": profile} if profile else {}
    made = io.BytesIO()
    if header.format in ("JPEG", "MPO"):
        rgb.save(made, "JPEG", **_JPEG, **options)
    else:
        rgb.save(made, "PNG", **options)
    return made.getvalue()
