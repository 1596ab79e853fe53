"""The program and what its commands have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from photon.cli.log import PROGRAM, LogFormat

app = typer.Typer(
    help="Boxes, points, captions and answers for large image collections, from one manifest.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
ManifestPath = Annotated[Path, typer.Argument(metavar="MANIFEST", help="The YAML file that says what to do.")]
OutputPath = Annotated[Path, typer.Argument(metavar="OUTPUT", help="The folder that a run wrote, its output.dir.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Set this key, whatever the manifest says; repeatable."),
]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Say more.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Say only what went wrong.")]
LogForm = Annotated[LogFormat, typer.Option("--log-format", help="What standard error gets: lines or JSON objects.")]


def examples(*lines: str) -> str:
    """The end of a command's help: each line without the program's name."""
    return "\b\nExamples:\n" + "\n".join(f"  {PROGRAM} {line}" for line in lines)


def _print_version(wanted: bool) -> None:
    if wanted:
        from photon import __version__

        typer.echo(f"{PROGRAM} {__version__}")
        raise typer.Exit


@app.callback(epilog=examples("run manifests/demo.yaml", "COMMAND --help"))
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Boxes, points, captions and answers for large image collections, from one manifest."""
