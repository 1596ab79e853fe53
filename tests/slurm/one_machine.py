"""A Slurm of one node on this machine, made for a test and gone after it: its own key, configuration, ports and state,
all in one folder. Needs root, and the programs of Debian's slurm-wlm and munge."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "scancel", "squeue", "sinfo")
#: Where daemons are, which is not on everybody's PATH.
PATH = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"
GPUS, CPUS = ("null", "zero"), 16
_CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} Gres=gpu:{gpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def reason_against() -> str | None:
    """Why there can be no Slurm here; None where there can."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    if missing:
        return f"no {', '.join(missing)} here; apt-get install slurm-wlm munge"
    return "munged and slurmd have to be started by root" if os.geteuid() else None


def wait_until(true: Callable[[], object], what: str, seconds: float = 150.0, every: float = 0.05) -> None:
    """Looks again and again. Raises ``TimeoutError`` that says ``what`` did not come."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        time.sleep(every)


@contextmanager
def slurm(folder: Path) -> Iterator[dict[str, str]]:
    """A running Slurm with its files in ``folder``, which is short enough for a socket's name; the environment that its
    commands need."""
    folder.chmod(0o755)
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    controller, daemon = _free_ports(2)
    host = socket.gethostname().partition(".")[0]
    configuration = folder / "slurm.conf"
    configuration.write_text(
        _CONFIGURATION.format(host=host, folder=folder, controller=controller, daemon=daemon, cpus=CPUS, gpus=len(GPUS))
    )
    # Devices that stand for GPUs, so that jobs can ask for some where there are none.
    (folder / "gres.conf").write_text("".join(f"Name=gpu File=/dev/{name}\n" for name in GPUS))
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "SBATCH", "SRUN"))}
    environment = {**ours, "PATH": PATH, "SLURM_CONF": str(configuration)}
    files = [f"--{name}={folder}/munge.{name.partition('-')[0]}" for name in ("pid-file", "log-file", "seed-file")]
    munged = ["munged", "--foreground", "--force", f"--socket={folder}/munge.socket", f"--key-file={key}", *files]
    with ExitStack() as stack:
        stack.enter_context(_daemon(munged, folder, environment))
        wait_until((folder / "munge.socket").exists, "munged's socket")
        stack.enter_context(_daemon(["slurmctld", "-D", "-f", str(configuration)], folder, environment))
        stack.enter_context(_daemon(["slurmd", "-D", "-f", str(configuration)], folder, environment))
        wait_until(lambda: _told(["sinfo", "-h", "-o", "%T"], environment) == "idle", "an idle node")
        try:
            yield environment
        finally:  # jobs of a test that failed
            _told(["scancel", "--user=root"], environment)
            with suppress(TimeoutError):
                wait_until(lambda: not _told(["squeue", "-h"], environment), "an empty queue", 40)


@contextmanager
def _daemon(command: list[str], folder: Path, environment: dict[str, str]) -> Iterator[None]:
    with open(folder / f"{command[0]}.log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=environment)
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _told(command: list[str], environment: dict[str, str]) -> str:
    return subprocess.run(command, env=environment, capture_output=True, text=True).stdout.strip()


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
