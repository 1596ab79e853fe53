"""``photon-batch schema``."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from photon.cli.app import app, examples


@app.command(epilog=examples("schema > manifest.schema.json"))
def schema(
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the reference of all keys instead.")] = False,
) -> None:
    """Print the manifest's JSON Schema, for editors and programs."""
    from photon.manifest.reference import reference
    from photon.manifest.schema import manifest_schema

    made = reference() if markdown else json.dumps(manifest_schema(), indent=2, ensure_ascii=False) + "\n"
    sys.stdout.write(made)
