"""``photon-batch export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from photon.cli.app import LogForm, OutputPath, Quiet, Verbose, app, examples
from photon.cli.log import LogFormat, set_up_log
from photon.cli.tell import errors_told, say


@app.command(epilog=examples("export outputs/cars --to yolo --out cars-yolo --split train=0.8,val=0.2"))
def export(
    output: OutputPath,
    to: Annotated[
        str,
        typer.Option(metavar="FORMAT", help="coco, yolo, voc, fiftyone, labelstudio, hf, jsonl or parquet."),
    ],
    out: Annotated[Path, typer.Option(metavar="PATH", help="The folder to make; for jsonl and parquet, the file.")],
    task: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="This task's answers alone; repeatable.")
    ] = None,
    classes: Annotated[
        list[str] | None, typer.Option(metavar="LABEL", help="Boxes and points of this label alone; repeatable.")
    ] = None,
    min_score: Annotated[float, typer.Option(help="Leave out boxes and points below this score.")] = 0.0,
    split: Annotated[
        str | None, typer.Option(metavar="NAME=SHARE,...", help="Divide the rows by id, as train=0.8,val=0.2.")
    ] = None,
    images: Annotated[
        str | None, typer.Option(metavar="copy|link|none", help="What becomes of pictures; see docs/exports.md.")
    ] = None,
    frame: Annotated[
        str | None,
        typer.Option(metavar="oriented|stored", help="Whether your tool turns pictures by EXIF (oriented) or not."),
    ] = None,
    bake_exif: Annotated[
        bool, typer.Option("--bake-exif", help="Write pictures turned as they are seen, without the tag.")
    ] = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
    log_format: LogForm = LogFormat.TEXT,
) -> None:
    """Write a run's answers for another tool."""
    set_up_log(verbose, quiet, log_format)
    with errors_told(False):
        from photon.export.export import write_export
        from photon.export.options import ExportOptions
        from photon.export.splits import Splits

        splits = None if split is None else Splits.parse(split)
        wanted = ExportOptions(tuple(task or ()), tuple(classes or ()), min_score, splits, images, frame, bake_exif)
        made = write_export(output, to, out, wanted)
    if not quiet:
        say(made.text())
