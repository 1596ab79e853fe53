"""``photon-batch validate``."""

from __future__ import annotations

import typer

from photon.cli.app import Json, ManifestPath, app
from photon.cli.tell import errors_told, print_json


@app.command()
def validate(manifest: ManifestPath, as_json: Json = False) -> None:
    """Check a manifest and the columns of its input; no model is loaded and nothing is written."""
    with errors_told(as_json):
        from photon.manifest.load import load_manifest

        loaded = load_manifest(manifest)
        from photon.job.sources import open_source

        rows = open_source(loaded).count()
    tasks = [task.name for task in loaded.tasks]
    count = "an unknown number of" if rows is None else f"{rows:,}"
    typer.echo(f"{manifest} is in order: {', '.join(tasks)} over {count} rows, into {loaded.output.dir}", err=True)
    if as_json:
        print_json({"valid": True, "rows": rows, "tasks": tasks, "manifest": loaded.model_dump(mode="json")})
