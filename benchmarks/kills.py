"""SIGKILL at random instants, by the hundred: what a killed job comes to in the end, byte by byte.

    python benchmarks/kills.py [--kills 500] [--seed 1]

Runs of the null model, each killed and gone on with until it is whole, and then held against one that nobody disturbed.
Ends with an AssertionError at the first difference; prints one JSON object else.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.job.killing import copy_plan, kill_at_random, make_base
from tests.job.zygote import Zygote


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    zygote = Zygote()
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        make_base(base, zygote)
        copy_plan(base)
        print(json.dumps(kill_at_random(base, zygote, options.kills, random.Random(options.seed))))
    zygote.close()


if __name__ == "__main__":
    main()
