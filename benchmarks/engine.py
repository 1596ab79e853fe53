"""The engine against a plain loop over the same model, both in one run; ratios are what counts.

    python benchmarks/engine.py [--images 8] [--size 320x240] [--questions 1 4 8] [--batch 1 8 32] [--depth 1 2]

A 100-million-parameter Moondream of seeded random weights in bfloat16 (vision 6 x 384, text 8 x 512, vocabulary 51200)
answers detect requests of five objects each. The plain loop asks one request at a time, and encodes each picture once
for all its questions, as the public reference can: same weights, same operators, no batching, no overlap.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import PIL.Image
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

import photon
from photon.core import Request
from photon.device.threads import ThreadDevice
from photon.engine.engine import Engine
from photon.engine.layout import decode_layout, prefill_layout
from photon.engine.rows import RowTable
from photon.engine.sizes import PAGE_SIZE, choose_sizes
from photon.engine.slots import Arena, upload
from photon.images.decode import DecodePolicy, decode
from photon.kernels.paged import KVPool
from photon.models.config import MoondreamConfig, TokenConfig
from photon.models.load import LoadedModel
from photon.models.moondream import COORDINATE, SIZE, Moondream
from photon.models.tiling import crop_count, cut_crops, select_tiling
from photon.models.tokenizer import Tokenizer

OBJECTS = 5
TINY = Path(photon.__file__).parent / "assets" / "tiny"
SHAPE = {
    "vision": {
        "enc_dim": 384, "enc_n_layers": 6, "enc_ff_dim": 1536, "enc_n_heads": 6, "proj_out_dim": 512,
        "proj_inner_dim": 2048,
    },
    "text": {"dim": 512, "ff_dim": 2048, "n_layers": 8, "vocab_size": 51200, "n_heads": 8},
    "region": {"dim": 512, "inner_dim": 2048},
}  # fmt: skip


def make_model() -> LoadedModel:
    """Random weights under which no object list ends by itself."""
    config = MoondreamConfig.from_dict(SHAPE)
    model = Moondream(config)
    generator = torch.Generator().manual_seed(0)
    for name, tensor in model.state_dict().items():
        owner, _, leaf = name.rpartition(".")
        values = torch.randn(tensor.shape, generator=generator).mul_(0.02)
        if "ln" in owner.rpartition(".")[2] and leaf == "weight":
            values.fill_(1.0)
        if name == "text.lm_head.bias":
            values[0] = -1e4
        setattr(model.get_submodule(owner), leaf, torch.nn.Parameter(values.bfloat16(), requires_grad=False))
    tokens = MoondreamConfig.read(TINY / "config.json").tokens or TokenConfig()
    return LoadedModel(model, tokens, Tokenizer.load(TINY), "benchmark", meaningless=True)


class PlainLoop:
    """One request after the other, one row, contiguous pages; the picture's prefix is kept while it is asked about."""

    def __init__(self, loaded: LoadedModel) -> None:
        self.loaded, self.model = loaded, loaded.model
        config = loaded.model.config
        self.prefix_len, self.vision = config.prefix_len, config.vision
        device = ThreadDevice()
        pages, text = -(-self.prefix_len // PAGE_SIZE), config.text
        shape = (text.n_layers, text.kv_heads, pages + 17, PAGE_SIZE, text.head_dim)
        self.pool = KVPool(*(device.buffer(*shape, dtype=self.model.dtype) for _ in range(2)))
        self.table = RowTable(1, 1, 16, pages, device)
        self.prefix = self.table.acquire_prefix(list(range(1, pages + 1)))
        self.own = list(range(pages + 1, pages + 17))
        self.arena = Arena(device, 8192, torch.int64)
        device.close()

    def image(self, data: bytes) -> None:
        picture, _ = decode(data, DecodePolicy())
        tiling = select_tiling(picture.height, picture.width, self.vision)
        pixels = np.empty((crop_count(tiling), self.vision.crop_size, self.vision.crop_size, 3), np.uint8)
        cut_crops(picture, tiling, self.vision, pixels)
        self.image_tokens = self.model.vision(torch.from_numpy(pixels), [tiling])
        self.fresh = True

    def detect(self, ids: list[int]) -> int:
        row = self.table.acquire_row(base=self.prefix_len, prefix=self.prefix, pages=self.own)
        rows, x = np.array([row]), self.model.embed(torch.tensor(ids))
        fresh = [self.prefix] if self.fresh else []
        if self.fresh:
            x = torch.cat((self.model.prefix(0, self.image_tokens), x))
            self.fresh = False
        self.arena.clear()
        layout = prefill_layout(
            self.arena, self.table, fresh, rows, np.array([len(ids)]), prefix_len=self.prefix_len, page_size=PAGE_SIZE
        )
        upload(self.arena).run()
        hidden = self.model.text(x, self.pool, layout)[-1:]
        found = 0
        while int(self.model.text.logits(hidden).argmax()) != 0 and found < OBJECTS:
            for _ in range(2):
                place = self.model.region.coordinate_logits(hidden).argmax().item() / 1024
                hidden = self.step(rows, COORDINATE, place, 0.0)
            width, height = self.model.region.size_logits(hidden)[0].argmax(-1).tolist()
            found += 1
            if found < OBJECTS:
                hidden = self.step(rows, SIZE, 2.0 ** (width / 102.3 - 10), 2.0 ** (height / 102.3 - 10))
        self.table.release_row(row)
        return found

    def step(self, rows: np.ndarray, kind: int, first: float, second: float) -> torch.Tensor:
        self.arena.clear()
        layout = decode_layout(self.arena, self.table, rows, prefix_len=self.prefix_len, page_size=PAGE_SIZE)
        upload(self.arena).run()
        values = torch.tensor([[first, second]])
        return self.model.text(self.model.embed(torch.tensor([0]), torch.tensor([kind]), values), self.pool, layout)


def encoded(count: int, size: tuple[int, int]) -> list[bytes]:
    from io import BytesIO

    files = []
    for i in range(count):
        file = BytesIO()
        PIL.Image.effect_noise(size, 30 + i).convert("RGB").save(file, "JPEG", quality=90)
        files.append(file.getvalue())
    return files


@torch.inference_mode()
def run_plain(loop: PlainLoop, files: Sequence[bytes], questions: int) -> float:
    tokenizer, template = loop.loaded.tokenizer, loop.loaded.tokens.templates["detect"]
    assert template is not None
    start = time.perf_counter()
    for data in files:
        loop.image(data)
        for k in range(questions):
            found = loop.detect(template["prefix"] + tokenizer.encode(f" thing {k}") + template["suffix"])
            assert found == OBJECTS
    return time.perf_counter() - start


def run_engine(loaded: LoadedModel, files: Sequence[bytes], questions: int, batch: int, depth: int) -> float:
    device = ThreadDevice()
    sizes = choose_sizes(
        loaded.model.config, max_batch=batch, device_type="cpu", free_bytes=4 << 30, itemsize=2, memory_fraction=0.9
    )
    engine = Engine(loaded, device, sizes, depth=depth, decision="masked", stop_repetition=False, policy=DecodePolicy())

    def requests():  # type: ignore[no-untyped-def]
        for i, data in enumerate(files):
            image = photon.Image(data)
            for k in range(questions):
                yield Request((i, k), image, "detect", f"thing {k}", max_objects=OBJECTS)

    start = time.perf_counter()
    found = [len(result.objects or ()) for result in engine.run(requests())]
    seconds = time.perf_counter() - start
    engine.close()
    assert found == [OBJECTS] * len(files) * questions
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=8)
    parser.add_argument("--size", default="320x240", help="320x240 is one crop, 640x480 nine")
    parser.add_argument("--questions", type=int, nargs="+", default=[1, 4, 8])
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--depth", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    loaded = make_model()
    width, height = map(int, options.size.split("x"))
    files = encoded(options.images, (width, height))
    plain = PlainLoop(loaded)
    run_plain(plain, files[:1], 1)  # warm up
    rows = []
    for questions in options.questions:
        base = run_plain(plain, files, questions)
        rows.append({"questions": questions, "what": "plain loop", "seconds": base, "ratio": 1.0})
        for batch in options.batch:
            for depth in options.depth:
                seconds = run_engine(loaded, files, questions, batch, depth)
                what = f"batch {batch}, depth {depth}"
                rows.append({"questions": questions, "what": what, "seconds": seconds, "ratio": base / seconds})
    about = {"images": options.images, "size": options.size, "threads": options.threads, "torch": torch.__version__}
    if options.json:
        print(json.dumps({**about, "processor": platform.processor(), "rows": rows}))
        return
    print(" ".join(f"{key}={value}" for key, value in about.items()))
    for row in rows:
        rate = options.images * row["questions"] / row["seconds"]
        what = f"K={row['questions']}  {row['what']:18}"
        print(f"{what} {row['seconds']:7.2f} s  {rate:6.2f} requests/s  x {row['ratio']:.2f}")


if __name__ == "__main__":
    main()
