"""``photon-batch slurm script`` and ``photon-batch slurm retry``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from photon.cli.app import ManifestPath, OutputPath, app, examples
from photon.cli.tell import errors_told, say

slurm = typer.Typer(help="A job as a Slurm array.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(slurm, name="slurm")

Tasks = Annotated[int, typer.Option(min=1, metavar="N", help="The number of shards, each an element of the array.")]
MaxRunning = Annotated[
    int | None, typer.Option(min=1, metavar="K", help="Elements that run at a time; by default what the cluster gives.")
]
MaxArraySize = Annotated[int, typer.Option(min=1, help="The cluster's MaxArraySize; more tasks take several arrays.")]


@slurm.command(epilog=examples("slurm script cars.yaml --tasks 64 --max-running 16 --gpus 1 --out cars.sh"))
def script(
    manifest: ManifestPath,
    tasks: Tasks,
    max_running: MaxRunning = None,
    time: Annotated[str | None, typer.Option(metavar="LIMIT", help="An element's time limit, as 12:00:00.")] = None,
    partition: Annotated[str | None, typer.Option(metavar="NAME", help="Where to run.")] = None,
    gpus: Annotated[int | None, typer.Option(min=1, help="GPUs of an element; one is all that it uses.")] = None,
    cpus: Annotated[int | None, typer.Option(min=1, help="CPUs of an element, to decode pictures.")] = None,
    self_requeue: Annotated[
        bool, typer.Option("--self-requeue", help="An element that ends with code 75 goes back into the queue.")
    ] = False,
    max_array_size: MaxArraySize = 1001,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Where to; by default, print it.")] = None,
) -> None:
    """Write a script for sbatch that does a manifest's rows in N shards."""
    with errors_told(False):
        from photon.audit.slurm import Script
        from photon.manifest.load import load_manifest

        load_manifest(manifest)  # what is wrong with it is better told here than in N logs
        asked = Script(
            str(manifest), tasks, max_running, max_array_size, time, partition, gpus, cpus, requeues=self_requeue
        )
        if out is None:
            typer.echo(asked.text(), nl=False)
        else:
            asked.write(out)


@slurm.command(epilog=examples("slurm retry outputs/cars --tasks 64"))
def retry(
    output: OutputPath, tasks: Tasks, max_running: MaxRunning = None, max_array_size: MaxArraySize = 1001
) -> None:
    """Print sbatch's options for the shards that have something left to do, a line for each array."""
    with errors_told(False):
        from photon.audit.slurm import arrays, missing_shards

        missing = missing_shards(output, tasks)
    if not missing:
        say(f"all {tasks} shards of {output} are done; there is nothing to submit")
    for array in arrays(missing, max_array_size):
        typer.echo(array.options(max_running))
