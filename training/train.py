"""Train the model in the box: gate by gate, from the checkpoint where there is one (``all``: from its gate on).

    python training/train.py --gate g0|g1|g2|g3|g4|all [--steps N] [--threads 1] [--device auto]

``training/checkpoint`` holds what a new machine goes on from: averaged weights in half precision and ``progress.json``.
The optimizer's state stays in ``outputs/training``, and a run on the same machine goes on from there exactly.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from training.batches import FINE, Batches
from training.check import measure
from training.gates import GATES, Gate, smoke_gates
from training.losses import step_loss
from training.muon import Muon
from training.network import DenseHead, fresh_model
from training.scenes import FEW, MIXED
from training.shape import SECTIONS, SMOKE_SECTIONS, as_config
from training.vocabulary import build, token_section

ROOT = Path(__file__).parents[1]
LOG_EVERY, SAVE_EVERY = 50, 500
AVERAGE = 0.998
INSIDE = (".blocks.", "proj_mlp", "decoder.fc1")
MUON_SHARE = 2.0
"""Muon's rate, as a share of AdamW's."""
SEED = 1
EVALUATED = 96
"""Held-out scenes of the evaluations on the way; the report's are others (``check``)."""
EVALUATED_FROM = 1_000_000


class Trainer:
    """Model, average and optimizer with their two places on disk."""

    def __init__(
        self, checkpoint: Path, local: Path, sections: dict[str, dict[str, int]], device: torch.device
    ) -> None:
        self.checkpoint, self.local, self.device = checkpoint, local, device
        self.stop = False
        self.sections, self.tokens = sections, token_section()
        self.config = as_config(sections, self.tokens)
        torch.manual_seed(SEED)
        self.model = fresh_model(self.config, SEED)
        self.head = DenseHead(self.config.text.dim, self.config.vision.enc_dim, FINE**2)
        self.progress: dict[str, Any] = {"gate": None, "step": 0, "steps": {}, "next_seed": {}, "curve": []}
        if (checkpoint / "progress.json").exists():
            self._read_checkpoint()
        self.model.to(device)
        self.model.text.rope = self.model.text.rope.to(device)
        self.head.to(device)
        self.average = copy.deepcopy(self.model)
        self.averaged_head = copy.deepcopy(self.head)
        self.optimizers = self._optimizers()
        self._read_local()

    def _optimizers(self) -> list[torch.optim.Optimizer]:
        """Muon for the matrices inside, AdamW for what is left: embeddings, norms, biases and last layers."""
        groups: dict[tuple[bool, bool], list[Tensor]] = {}
        for name, parameter in [*self.model.named_parameters(), *self.head.named_parameters("head")]:
            if parameter.requires_grad:
                inside = parameter.ndim == 2 and any(part in name for part in INSIDE)
                groups.setdefault((inside, name.startswith("vision.")), []).append(parameter)
        muon, adam = (
            [
                {
                    "params": parameters,
                    "vision": vision,
                    "share": MUON_SHARE if inside else 1.0,
                    "weight_decay": 0.05 if inside else 0.0,
                }
                for (inside, vision), parameters in groups.items()
                if inside == wanted
            ]
            for wanted in (True, False)
        )
        return [Muon(muon), torch.optim.AdamW(adam, betas=(0.9, 0.95), fused=True)]

    def _read_checkpoint(self) -> None:
        self.progress = json.loads((self.checkpoint / "progress.json").read_text())
        weights = load_file(self.checkpoint / "model.safetensors")
        self.model.load_state_dict({name.removeprefix("model."): w.float() for name, w in weights.items()})
        head = load_file(self.checkpoint / "dense_head.safetensors")
        self.head.load_state_dict({name: w.float() for name, w in head.items()})

    def _read_local(self) -> None:
        path = self.local / "state.pt"
        if not path.exists():
            return
        state = torch.load(path, map_location=self.device, weights_only=True)
        if state["at"] != [self.progress["gate"], self.progress["step"]]:
            return  # of another run than the checkpoint
        self.model.load_state_dict(state["model"])
        self.head.load_state_dict(state["head"])
        self.average.load_state_dict(state["average"])
        self.averaged_head.load_state_dict(state["averaged_head"])
        for optimizer, its in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(its)

    def save(self) -> None:
        """Each file is whole at any moment, whatever kills us: written beside its place, then put there."""
        fresh = self.checkpoint / "new"
        fresh.mkdir(parents=True, exist_ok=True)
        self.local.mkdir(parents=True, exist_ok=True)
        weights = {f"model.{name}": w.half().cpu().contiguous() for name, w in self.average.state_dict().items()}
        save_file(weights, fresh / "model.safetensors")
        head = {name: w.half().cpu().contiguous() for name, w in self.averaged_head.state_dict().items()}
        save_file(head, fresh / "dense_head.safetensors")
        config = {**self.sections, "tokenizer": self.tokens}
        (fresh / "config.json").write_text(json.dumps(config, indent=1) + "\n")
        build().save(str(fresh / "tokenizer.json"))
        (fresh / "progress.json").write_text(json.dumps(self.progress, indent=1) + "\n")
        for file in fresh.iterdir():
            file.replace(self.checkpoint / file.name)
        fresh.rmdir()
        state = {
            "at": [self.progress["gate"], self.progress["step"]],
            "model": self.model.state_dict(),
            "head": self.head.state_dict(),
            "average": self.average.state_dict(),
            "averaged_head": self.averaged_head.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
        }
        torch.save(state, self.local / "state.new")
        (self.local / "state.new").replace(self.local / "state.pt")

    def run_gate(self, gate: Gate, *, evaluate: int) -> None:
        """From the step that the checkpoint is at; every ``evaluate`` steps measured on held-out scenes (0: never)."""
        done = int(self.progress["steps"].get(gate.name, 0))
        seed = int(self.progress["next_seed"].get(gate.name, gate.seeds))
        window = _Window()
        with Batches(seed, gate, self.config.vision, gate.images) as batches:
            for step, batch in zip(range(done + 1, gate.steps + 1), batches, strict=False):
                report = self._step(gate, step, batch)
                window.add(report)
                self.progress |= {"gate": gate.name, "step": step}
                self.progress["steps"][gate.name] = step
                self.progress["next_seed"][gate.name] = seed = seed + gate.images
                if step % LOG_EVERY == 0 or step == gate.steps:
                    self._log(gate, step, window)
                if step % SAVE_EVERY == 0 or step == gate.steps:
                    self.save()
                if self.stop:
                    self.save()
                    raise SystemExit(f"stopped at step {step} of {gate.name}; the same command goes on from there")
                if evaluate and gate.questions and (step % evaluate == 0 or step == gate.steps):
                    self._evaluate(gate, step)

    def _step(self, gate: Gate, step: int, batch: Any) -> dict[str, float]:
        at = step / gate.steps
        pace = min(1.0, step / gate.warm_up)
        if at > 1 - gate.decay:
            pace *= max(0.02, (1 - at) / gate.decay)
        groups = [group for optimizer in self.optimizers for group in optimizer.param_groups]
        for group in groups:
            group["lr"] = group["share"] * pace * (gate.vision_rate if group["vision"] else gate.rate)
        wide, narrow = gate.width
        width = narrow * (wide / narrow) ** max(0.0, 1 - 3 * at)
        loss, report = step_loss(self.model, self.head, batch.tensors(self.device), batch.tilings, gate, width)
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss.backward()
        trained = [p for group in groups for p in group["params"] if p.grad is not None]
        report["norm"] = float(torch.nn.utils.clip_grad_norm_(trained, 1.0))
        if math.isfinite(report["norm"]):
            for optimizer in self.optimizers:
                optimizer.step()
        self._average(step)
        return report

    @torch.no_grad()
    def _average(self, step: int) -> None:
        keep = min(AVERAGE, (1 + step) / (10 + step))
        for ours, new in ((self.average, self.model), (self.averaged_head, self.head)):
            torch._foreach_lerp_(list(ours.parameters()), list(new.parameters()), 1 - keep)

    def _log(self, gate: Gate, step: int, window: _Window) -> None:
        means, rate = window.close()
        entry = {"gate": gate.name, "step": step, **{k: round(v, 4) for k, v in means.items()}}
        self.progress["curve"].append(entry)
        shown = " ".join(f"{name} {value:.3g}" for name, value in means.items())
        print(
            f"{time.strftime('%H:%M:%S')} {gate.name} {step}/{gate.steps}: {shown} | {rate * gate.images:.1f} images/s",
            flush=True,
        )

    def _evaluate(self, gate: Gate, step: int) -> None:
        start = time.perf_counter()
        self.save()
        recipe = gate.scenes[0][0] if gate.name == "g1" else FEW if gate.name == "g2" else MIXED
        tally = measure(self.checkpoint, recipe, EVALUATED, first=EVALUATED_FROM)
        figures = {name: round(value, 3) for name, value in tally.figures().items() if value is not None}
        self.progress["curve"].append({"gate": gate.name, "step": step, "held out": recipe.name, **figures})
        print(f"  held out ({recipe.name}, {time.perf_counter() - start:.0f} s): {figures}", flush=True)


class _Window:
    """Means of what was logged since the last line."""

    def __init__(self) -> None:
        self.sums: dict[str, float] = {}
        self.steps, self.start = 0, time.perf_counter()

    def add(self, report: dict[str, float]) -> None:
        self.steps += 1
        for name, value in report.items():
            self.sums[name] = self.sums.get(name, 0.0) + value

    def close(self) -> tuple[dict[str, float], float]:
        means = {name: value / self.steps for name, value in self.sums.items()}
        rate = self.steps / (time.perf_counter() - self.start)
        self.sums, self.steps, self.start = {}, 0, time.perf_counter()
        return means, rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gate", choices=[*GATES, "all"], default="all")
    parser.add_argument("--steps", type=int, help="of the gate, in place of its own number")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--smoke", action="store_true", help="a tiny model for under a minute; writes to outputs only")
    parser.add_argument("--evaluate", type=int, default=500, help="steps between evaluations; 0: none")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    cuda = options.device == "cuda" or (options.device == "auto" and torch.cuda.is_available())
    device = torch.device("cuda" if cuda else "cpu")
    local = ROOT / "outputs" / "training"
    if options.smoke:
        smoke(local / "smoke", device)
        return
    trainer = Trainer(ROOT / "training" / "checkpoint", local, SECTIONS, device)
    signal.signal(signal.SIGTERM, lambda *_: setattr(trainer, "stop", True))
    names = list(GATES) if options.gate == "all" else [options.gate]
    if options.gate == "all" and trainer.progress["gate"]:
        names = names[names.index(trainer.progress["gate"]) :]
    for gate in (GATES[name] for name in names):
        trainer.run_gate(replace(gate, steps=options.steps or gate.steps), evaluate=options.evaluate)


def smoke(folder: Path, device: torch.device) -> list[dict[str, Any]]:
    """Two short gates of a tiny model; the logged lines."""
    trainer = Trainer(folder / "checkpoint", folder, SMOKE_SECTIONS, device)
    for gate in smoke_gates():
        trainer.run_gate(gate, evaluate=0)
    curve: list[dict[str, Any]] = trainer.progress["curve"]
    return curve


if __name__ == "__main__":
    main()
