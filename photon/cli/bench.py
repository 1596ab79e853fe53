"""``photon-batch bench``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from photon.cli.app import Json, app, examples
from photon.cli.tell import errors_told, print_json

bench = typer.Typer(help="Measure on this machine.", no_args_is_help=True)
app.add_typer(bench, name="bench")


@bench.command("decode", epilog=examples("bench decode --modes eager --tokens 32"))
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
    with errors_told(as_json):
        from photon.bench.decode import Workload, numbers
        from photon.bench.decode import bench_decode as measure
        from photon.engine.fast_decoder import load_on

        where = {"revision": revision, "tokenizer": tokenizer, "tokenizer_revision": tokenizer_revision}
        work = Workload(tokens, image, repeats, {"temperature": temperature, "top_p": top_p, "top_k": top_k})
        looks = numbers(check_every)
        loaded = load_on(model, device, dtype, **where)
        report = measure(loaded, work, modes=modes.split(","), check_every=looks, capacity=capacity)
    if as_json:
        print_json(report.as_dict())
    else:
        typer.echo(report.text())
