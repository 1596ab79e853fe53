"""Makes a 2B-size checkpoint of seeded random weights, or answers one detect with it. Run as a script, in a process of
its own, so that its peak memory is its own: ``full_size.py make|detect FOLDER``."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import PIL.Image
import torch

from photon.models.config import MoondreamConfig
from photon.models.moondream import Moondream
from tests.reference import TINY


def make(folder: Path) -> None:
    """Uniform weights at about a hundredth, norms at one; written tensor by tensor, so that it fits a small machine."""
    random = np.random.default_rng(0)
    tensors = Moondream(MoondreamConfig()).state_dict()
    header: dict[str, object] = {}
    offset = 0
    for name, tensor in tensors.items():
        end = offset + 2 * tensor.numel()
        header[f"model.{name}"] = {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, tensor in tensors.items():
            is_norm = name.rsplit(".", 2)[-2].endswith(("ln", "ln1", "ln2")) and name.endswith("weight")
            drawn = torch.from_numpy(np.frombuffer(random.bytes(tensor.numel()), np.int8).copy())
            values = torch.ones(tensor.shape) if is_norm else drawn * 2e-4
            file.write(values.bfloat16().view(torch.int16).numpy().tobytes())
    tokens = json.loads((TINY / "config.json").read_text())["tokenizer"]
    (folder / "config.json").write_text(json.dumps({"tokenizer": tokens}))
    shutil.copy(TINY / "tokenizer.json", folder)


def detect(folder: Path) -> None:
    """Prints the answer and this process's peak resident set in bytes."""
    import photon

    engine = photon.Engine.load(str(folder), dtype="bfloat16")
    picture = PIL.Image.effect_noise((320, 240), 64).convert("RGB")
    (result,) = engine.run([photon.Request(0, photon.Image(picture), "detect", "cat", max_objects=2)])
    engine.close()
    status = Path("/proc/self/status").read_text()
    peak = int(status.split("VmHWM:")[1].split()[0]) * 1024
    error = result.error and result.error.message
    print(json.dumps({"error": error, "objects": len(result.objects or ()), "n_tokens": result.n_tokens, "peak": peak}))


if __name__ == "__main__":
    {"make": make, "detect": detect}[sys.argv[1]](Path(sys.argv[2]))
