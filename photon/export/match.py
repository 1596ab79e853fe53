"""Which row of an output a reviewed picture is: by the row's id or, where a tool lost it, by the name it was given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from photon.errors import UsageError
from photon.export.names import row_name, safe_name, stem_and_suffix
from photon.export.reviewed import ReviewedPicture
from photon.job.output import RunOutput

_COLUMNS = ("row_id", "source", "image")


class Matcher:
    def __init__(self, pictures: Sequence[ReviewedPicture], where: str) -> None:
        self._where = where
        self._left: dict[str, ReviewedPicture] = {}
        self._taken: dict[str, str] = {}
        for picture in pictures:
            key = _by_id(picture.row_id) if picture.row_id is not None else _by_name(picture.name)
            if key in self._left:
                raise UsageError(f"{where}: {picture.row_id or picture.name} comes twice; keep one of them")
            self._left[key] = picture

    def matches(self, output: RunOutput) -> Iterator[tuple[dict[str, Any], ReviewedPicture]]:
        """Each reviewed picture with its row, in the output's order. Raises ``UsageError`` for one without a row or
        with two."""
        for index, row in enumerate(output.rows(_COLUMNS)):
            if row["image"] is None:
                continue
            key = next((key for key in self._keys(row, index, output) if key in self._left or key in self._taken), None)
            if key is None:
                continue
            if key in self._taken:
                raise UsageError(
                    f"{self._where}: {key.partition(':')[2]} fits two rows of {output.root}; "
                    "run with an input.id that tells rows apart"
                )
            self._taken[key] = row["row_id"]
            yield row, self._left.pop(key)
        if self._left:
            one = next(iter(self._left.values()))
            raise UsageError(
                f"{self._where}: {len(self._left):,} pictures are of no row of {output.root}, {one.name} among them; "
                "keep row_id, or the names that export gave, and correct the run that was exported"
            )

    def _keys(self, row: Mapping[str, Any], index: int, output: RunOutput) -> Iterator[str]:
        """The likeliest first; names as ``export`` gives them, with and without pictures."""
        yield _by_id(row["row_id"])
        name = row_name(row, output)
        stem, suffix = stem_and_suffix(safe_name(name))
        suffixes = (suffix,) if suffix else _SUFFIXES
        yield from (_by_name(f"{stem}-row{index}{given}") for given in suffixes)
        yield _by_name(name)
        yield from (_by_name(f"{stem}{given}") for given in suffixes)


#: What an export adds to names without a suffix.
_SUFFIXES = ("", ".jpg", ".png", ".webp", ".tif", ".bmp", ".gif", ".heif", ".avif", ".jp2")


def _by_id(row_id: str) -> str:
    return f"id:{row_id}"


def _by_name(name: str) -> str:
    return f"name:{name}"
