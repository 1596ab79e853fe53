"""Where a row's picture goes in an export's folder, and under which name."""

from __future__ import annotations

from pathlib import Path

from photon.export.names import free_stem, safe_name, stem_and_suffix
from photon.export.rows import ExportRow


def place_picture(row: ExportRow, folder: Path, link: bool, *beside: tuple[Path, str]) -> str:
    """Puts the row's picture into ``folder`` and tells its name there; without a picture, the name alone. The stem is
    free in every other folder of ``beside`` too, with the suffix given there."""
    name = safe_name(row.name)
    if row.picture is not None:
        name = row.picture.named(name)
    stem, suffix = stem_and_suffix(name)
    stem = free_stem(stem, row.index, (folder, suffix), *beside)
    if row.picture is not None:
        row.picture.put(folder / f"{stem}{suffix}", link)
    return f"{stem}{suffix}"
