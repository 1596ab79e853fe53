"""photon-batch: each command is one call into the library.

Standard output carries what was asked for by --json, --help or --version and the tables of ``simulate``, ``eval`` and
``bench``, and nothing else; messages, the progress bar and the summary go to standard error.
Exit codes are those of ``photon.errors``, 3 for too many failed rows, 130 for an interrupt.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from photon.errors import PhotonError

PROGRAM = "photon-batch"
INTERRUPTED = 130

app = typer.Typer(
    help="Boxes, points, captions and answers for large image collections, from one manifest.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
bench = typer.Typer(help="Measure on this machine.", no_args_is_help=True)
app.add_typer(bench, name="bench")
ManifestPath = Annotated[Path, typer.Argument(metavar="MANIFEST", help="The YAML file that says what to do.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        from photon import __version__

        typer.echo(f"{PROGRAM} {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Boxes, points, captions and answers for large image collections, from one manifest."""


@app.command()
def run(
    manifest: ManifestPath,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after this many rows.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Replace the results of an earlier run.")] = False,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write what each step did, for https://ui.perfetto.dev.")
    ] = None,
    as_json: Json = False,
    no_progress: Annotated[bool, typer.Option("--no-progress", help="Show no bar and no progress lines.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Say more.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Say only what went wrong.")] = False,
) -> None:
    """Ask a manifest's tasks of every row of its input and write the answers."""
    _set_up_log(verbose, quiet)
    with _errors_told(as_json):
        from photon.job.load import load_manifest

        loaded = load_manifest(manifest)
        from photon.job.progress import progress_for
        from photon.job.run import run as run_job

        shown = progress_for(shown=not (no_progress or quiet))
        summary = run_job(loaded, limit=limit, fresh=fresh, progress=shown, trace=trace)
    if not quiet:
        typer.echo(summary.text(), err=True)
    if as_json:
        _print_json(summary.as_dict())
    raise typer.Exit(summary.exit_code)


@app.command()
def validate(manifest: ManifestPath, as_json: Json = False) -> None:
    """Check a manifest and the columns of its input; no model is loaded and nothing is written."""
    with _errors_told(as_json):
        from photon.job.load import load_manifest

        loaded = load_manifest(manifest)
        from photon.job.sources import open_source

        rows = open_source(loaded).count()
    tasks = [task.name for task in loaded.tasks]
    count = "an unknown number of" if rows is None else f"{rows:,}"
    typer.echo(f"{manifest} is in order: {', '.join(tasks)} over {count} rows, into {loaded.output.dir}", err=True)
    if as_json:
        _print_json({"valid": True, "rows": rows, "tasks": tasks, "manifest": loaded.model_dump(mode="json")})


@app.command()
def simulate(
    profile: Annotated[str, typer.Option(help="The card: 3090, h100, h200 or b200.")] = "b200",
    mix: Annotated[str, typer.Option(help="What is asked: text, detect or point.")] = "text",
    streams: Annotated[int, typer.Option(help="Requests at a time.")] = 32,
    length: Annotated[int, typer.Option(help="Tokens of a text.")] = 110,
    objects: Annotated[int, typer.Option(help="Objects found by detect and point.")] = 3,
    questions: Annotated[int, typer.Option(help="Questions about each image.")] = 1,
    crops: Annotated[int, typer.Option(help="Crops of each image.")] = 9,
    inject: Annotated[str | None, typer.Option(metavar="BUG", help="Plant one: sync-mask-upload.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the timelines of both depths as SVG.")] = None,
    as_json: Json = False,
) -> None:
    """What pipelining gains on a card that is not there: the engine's loop on a simulated clock."""
    with _errors_told(as_json):
        from photon.sim.profile import load_profile
        from photon.sim.report import compare
        from photon.sim.workload import mix_of

        card = load_profile(profile)
        asked = mix_of(mix, streams=streams, length=length, objects=objects, questions=questions, crops=crops)
        comparison = compare(card, asked, inject=inject)
        if plot is not None:
            from photon.sim.timeline import write_timeline

            write_timeline(plot, card, asked)
    if as_json:
        _print_json(comparison.as_dict())
    else:
        typer.echo(comparison.text())


@app.command("eval")
def evaluate(
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help="The folder that a run wrote, its output.dir.")],
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
) -> None:
    """Hold a run's answers against truth: precision, recall, F1, AP, hits, exact matches, by task and class."""
    as_json = json_file is not None and str(json_file) == "-"
    with _errors_told(as_json):
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

    typer.echo(table(report), err=as_json)
    if as_json:
        _print_json(report.as_dict())


@app.command()
def preview(
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help="The folder that a run wrote, its output.dir.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to, a .png; by default OUTPUT/preview.png.")
    ] = None,
    rows: Annotated[int, typer.Option(help="Draw so many rows, spread over the whole output.")] = 12,
    columns: Annotated[int, typer.Option(help="Pictures side by side.")] = 4,
    task: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="This task's answers alone; repeatable.")
    ] = None,
    min_score: Annotated[float, typer.Option(help="Leave out boxes and points below this score.")] = 0.0,
    failed: Annotated[bool, typer.Option("--failed", help="Draw failed rows alone.")] = False,
    seed: Annotated[int, typer.Option(help="Another one draws other rows.")] = 0,
) -> None:
    """Draw a sample of a run's answers on their pictures, as one PNG."""
    with _errors_told(False):
        from photon.report.preview import PreviewOptions, write_preview

        options = PreviewOptions(rows, columns, tuple(task or ()), min_score, failed, seed)
        made = write_preview(output, out, options)
    typer.echo(made.text(), err=True)


@bench.command("decode")
def bench_decode(
    model: Annotated[str, typer.Option(help="A folder, a hub id with --revision, or photon://tiny.")] = "photon://tiny",
    revision: Annotated[str | None, typer.Option(help="Commit or tag of a hub id.")] = None,
    tokenizer: Annotated[str | None, typer.Option(help="Folder or hub id of a vocabulary that is elsewhere.")] = None,
    tokenizer_revision: Annotated[str | None, typer.Option(help="Commit or tag of that hub id.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    dtype: Annotated[str, typer.Option(help="auto, float32 or bfloat16.")] = "auto",
    image: Annotated[Path | None, typer.Option(metavar="FILE", help="Ask about this picture, not about none.")] = None,
    tokens: Annotated[int, typer.Option(help="Length of the text.")] = 128,
    modes: Annotated[str, typer.Option(help="Of eager, graph and compile, with commas.")] = "eager,graph,compile",
    check_every: Annotated[str, typer.Option(help="Steps between two looks at the tokens, with commas.")] = "1,8,32",
    capacity: Annotated[
        int | None, typer.Option(help="Positions of the cache at most; by default the model's.")
    ] = None,
    temperature: Annotated[float, typer.Option(help="0 takes the likeliest token.")] = 0.0,
    top_p: Annotated[float, typer.Option(help="Draw from the nucleus of this mass.")] = 1.0,
    top_k: Annotated[int, typer.Option(help="Draw from so many; 0: from all.")] = 0,
    repeats: Annotated[int, typer.Option(help="Runs of each way; medians are shown.")] = 3,
    as_json: Json = False,
) -> None:
    """The single-stream decoder against a plain loop: tokens/s, same tokens, GB/s, what each check_every costs."""
    with _errors_told(as_json):
        from photon.bench.decode import Workload, numbers
        from photon.bench.decode import bench_decode as measure
        from photon.engine.fast_decoder import load_on

        where = {"revision": revision, "tokenizer": tokenizer, "tokenizer_revision": tokenizer_revision}
        work = Workload(tokens, image, repeats, {"temperature": temperature, "top_p": top_p, "top_k": top_k})
        looks = numbers(check_every)
        loaded = load_on(model, device, dtype, **where)
        report = measure(loaded, work, modes=modes.split(","), check_every=looks, capacity=capacity)
    if as_json:
        _print_json(report.as_dict())
    else:
        typer.echo(report.text())


def main() -> None:
    """The console script."""
    app(prog_name=PROGRAM)


@contextmanager
def _errors_told(as_json: bool) -> Iterator[None]:
    """Tells an expected error as one message and exits with its code; a bug keeps its traceback and exits 1."""
    try:
        yield
    except PhotonError as error:
        message, code = str(error), error.exit_code
        problems = [
            {"line": problem.line, "key": problem.key, "message": problem.message}
            for problem in getattr(error, "problems", ())
        ]
    except KeyboardInterrupt as error:
        message, code, problems = "; ".join(["interrupted", *getattr(error, "__notes__", ())]), INTERRUPTED, []
    else:
        return
    typer.echo(f"{PROGRAM}: error: {message}", err=True)
    if as_json:
        _print_json({"error": message, "exit_code": code, "problems": problems})
    raise typer.Exit(code)


def _print_json(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value, default=str) + "\n")


def _set_up_log(verbose: bool, quiet: bool) -> None:
    level = logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
    handler = _BarFriendlyHandler()
    handler.setFormatter(logging.Formatter(f"{PROGRAM}: %(message)s"))
    log = logging.getLogger("photon")
    log.handlers[:] = [handler]
    log.setLevel(level)
    log.propagate = False


class _BarFriendlyHandler(logging.Handler):
    """Log lines on standard error that leave a progress bar whole."""

    def emit(self, record: logging.LogRecord) -> None:
        from tqdm import tqdm

        tqdm.write(self.format(record), file=sys.stderr)
