"""``photon-batch eval``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from photon.cli.app import LogForm, OutputPath, Quiet, Verbose, app, examples
from photon.cli.log import LogFormat, set_up_log
from photon.cli.tell import errors_told, print_json, say


@app.command("eval", epilog=examples("eval outputs/cars --truth truth --json figures.json"))
def evaluate(
    output: OutputPath,
    truth: Annotated[str, typer.Option(metavar="COLUMN", help="The column with what is right; see docs/evaluate.md.")],
    truth_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Parquet with that column, where the run did not keep it.")
    ] = None,
    on: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Finds a row in FILE; by default row_id, or its position.")
    ] = None,
    task: Annotated[str | None, typer.Option(metavar="NAME", help="Judge this task alone.")] = None,
    boxes: Annotated[str | None, typer.Option(metavar="xyxy|xywh", help="What four numbers of a box are.")] = None,
    pixels: Annotated[bool, typer.Option("--pixels", help="Truth is in pixels of the recorded frame.")] = False,
    iou: Annotated[float, typer.Option(help="From this share of their union on, a box fits a true one.")] = 0.5,
    min_score: Annotated[float, typer.Option(help="Leave out answers below this score.")] = 0.0,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all figures as JSON; - for standard output.")
    ] = None,
    picture: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the figures as .png or .svg.")] = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    log_format: LogForm = LogFormat.TEXT,
) -> None:
    """Hold a run's answers against truth: precision, recall, F1, AP, hits, exact matches, by task and class."""
    set_up_log(verbose, quiet, log_format)
    as_json = json_file is not None and str(json_file) == "-"
    with errors_told(as_json):
        from photon.evaluate.evaluate import evaluate as judge
        from photon.evaluate.options import Judging, TruthOptions, layout_of
        from photon.job.folder import result_file

        options = TruthOptions(truth, truth_file, on, task, layout_of(boxes), pixels)
        judging = Judging(iou, min_score)
        for path, kind in ((None if as_json else json_file, "JSON"), (picture, "picture")):
            if path is not None:
                result_file(path, output, kind)
        if picture is not None:
            from photon.evaluate.chart import check_chart

            check_chart(picture)
        report = judge(output, options, judging)
        if json_file is not None and not as_json:
            report.write(json_file)
        if picture is not None:
            from photon.evaluate.chart import write_chart

            write_chart(report, picture)
    from photon.evaluate.table import table

    if not as_json:
        typer.echo(table(report))
        return
    if not quiet:
        say(table(report))
    print_json(report.as_dict())
