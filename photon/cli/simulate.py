"""``photon-batch simulate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from photon.cli.app import Json, app, examples
from photon.cli.tell import errors_told, print_json


@app.command(epilog=examples("simulate --mix detect --questions 8"))
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
    with errors_told(as_json):
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
        print_json(comparison.as_dict())
    else:
        typer.echo(comparison.text())
