"""The GPU day: is the engine right on this card, and how fast, in one command of less than nine minutes.

    python benchmarks/gpu_day.py [--smoke] [--sections correctness,safety,ceilings,floors,detect,stray,text]
                                 [--out outputs/gpu_day.json] [--stretch 1]

Runs from a checkout, with torch 2.11 or later on Python 3.11 to 3.13 and with nothing beyond torch, triton,
transformers, pyarrow, pillow, safetensors and tqdm. Prints a table as it goes, and keeps the JSON file whole after
every row. Each section runs in a process of its own, so that a failure costs that section alone; what there is no time
for is "not run". --smoke runs everything small, within a minute, on a CPU too: what needs a CUDA device is "skipped".
Exit code: 0 when nothing failed, 1 when a section did, 2 for wrong arguments.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # sections are forks
sys.path.insert(0, str(Path(__file__).parents[1]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="everything small; the figures mean nothing")
    parser.add_argument("--sections", default=None, help="some of them, with commas; floors need ceilings")
    parser.add_argument("--out", type=Path, default=Path("outputs/gpu_day.json"))
    parser.add_argument("--stretch", type=float, default=1.0, help="allow so many times the time, on a slow machine")
    options = parser.parse_args()

    import transformers.tokenization_utils_base  # noqa: F401 - once, not in every section

    from benchmarks.gpu.day import SECTIONS, run, tail

    names = list(SECTIONS) if options.sections is None else options.sections.split(",")
    if unknown := [name for name in names if name not in SECTIONS]:
        parser.error(f"no section {unknown[0]!r}; there are {', '.join(SECTIONS)}")
    chosen = {name: SECTIONS[name] for name in names}
    ways = {"smoke": options.smoke, "out": options.out, "stretch": options.stretch}
    report = run(sections=chosen, tell=lambda text: print(text, flush=True), **ways)
    print(tail(report), f"in {options.out}", flush=True)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
