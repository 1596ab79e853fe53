"""The program and what its commands have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from photon.cli.tell import PROGRAM

app = typer.Typer(
    help="Boxes, points, captions and answers for large image collections, from one manifest.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
ManifestPath = Annotated[Path, typer.Argument(metavar="MANIFEST", help="The YAML file that says what to do.")]
OutputPath = Annotated[Path, typer.Argument(metavar="OUTPUT", help="The folder that a run wrote, its output.dir.")]
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
