"""What training lowers: answers as the engine will read them, and helpers that are dropped afterwards."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from photon.models.moondream import Moondream
from photon.models.tiling import crop_count
from photon.models.vision import normalise
from training.batches import IGNORED, NOTHING
from training.gates import Gate
from training.network import DenseHead, run_rows
from training.scene import COLOURS, KINDS
from training.shape import BINS

BACKGROUND = (0.06, 0.3)
"""Weight of patches without a thing: among the centres, and among what is covered."""
LEVELS = (1.0, 0.5)
POINTER = 0.5
MASK = 5.0
CENTRE = 3.0
PLACE = 2.0


def dense_loss(outputs: Tensor, centres: Tensor, batch: dict[str, Tensor], report: dict[str, float]) -> Tensor:
    """``outputs`` [B, 2, patches, n] and ``centres`` [B, patches, 2] of the dense head against what is there."""
    there, kinds, colours, places = outputs.split((1, len(KINDS), len(COLOURS), 4), dim=-1)
    total = outputs.new_zeros(())
    for level, share in enumerate(LEVELS):
        truth = batch["patch_kinds"][:, level]
        at = truth != NOTHING
        guess = there[:, level, :, 0]
        weight = torch.where(at, 1.0, BACKGROUND[level])
        is_there = F.binary_cross_entropy_with_logits(guess, at.float(), weight, reduction="sum") / weight.sum()
        kind = F.cross_entropy(kinds[:, level][at], truth[at])
        colour = F.cross_entropy(colours[:, level][at], batch["patch_colours"][:, level][at])
        errors = (places[:, level][at] - batch["patch_places"][:, level][at]).abs()
        offset, size = errors[:, :2].mean(), errors[:, 2:].mean()
        total = total + share * (is_there + kind + colour + 2 * offset + size)
        if level == 0:
            centre = (centres[at] - (batch["patch_centres"][at] * 4 - 2)).abs().mean()
            total = total + CENTRE * centre
            report |= {
                "centre": centre.item() / 4,
                "there": is_there.item(),
                "kind": kind.item(),
                "colour": colour.item(),
                "offset": offset.item(),
                "size": size.item(),
                "kind_right": (kinds[:, 0][at].argmax(-1) == truth[at]).float().mean().item(),
            }
    return total


def soft_bins(targets: Tensor, width: float) -> Tensor:
    """Places on the scale of bins [n] to weights [n, BINS]: a bell of that width, in bins."""
    bins = torch.arange(BINS, device=targets.device)
    return (-((bins - targets[:, None]) ** 2) / (2 * width**2)).softmax(dim=-1)


def answer_loss(
    model: Moondream,
    head: DenseHead,
    image_tokens: Tensor,
    batch: dict[str, Tensor],
    width: float,
    report: dict[str, float],
) -> Tensor:
    image_tokens = image_tokens[: len(batch["ids"])]
    x = model.embed(batch["ids"].flatten(), batch["kinds"].flatten(), batch["values"].flatten(0, 1)).unflatten(
        0, batch["ids"].shape
    )
    seen = run_rows(model, image_tokens, x, batch["positions"], batch["segments"], looks=True)
    hidden = seen.hidden
    at = batch["tokens"] != IGNORED
    truth = batch["tokens"][at]
    logits = model.text.logits(hidden[at])
    losses = {"token": F.cross_entropy(logits, truth)}
    at = batch["coordinates"] >= 0
    bins = (batch["coordinates"][at] * BINS).clamp(0, BINS - 1)
    guesses = model.region.coordinate_logits(hidden[at])
    losses["place"] = F.cross_entropy(guesses, soft_bins(bins, width))
    at_place = batch["places"][..., 2] >= 0
    centre, sides = batch["places"][at_place].split(2, dim=-1)
    errors = head.place(hidden[at_place]) - torch.cat((centre * 4 - 2, sides.clamp_min(1 / 1024).log2()), dim=-1)
    losses["read"] = errors.abs().mean()
    at_size = batch["sizes"][..., 0] >= 0
    side_bins = (batch["sizes"][at_size].clamp_min(1 / 1024).log2() + 10) / 10 * (BINS - 1)
    size_logits = model.region.size_logits(hidden[at_size])
    losses["side"] = F.cross_entropy(size_logits.flatten(0, 1), soft_bins(side_bins.flatten(), width))
    wanted = batch["pointers"]
    asked = wanted.sum().clamp_min(1)
    looks = [-(wanted * look.clamp_min(-50)).sum() / asked for look in seen.looks]
    losses["look"] = sum(looks, start=hidden.new_zeros(()))
    with torch.no_grad():
        report |= {name: loss.item() for name, loss in losses.items()}
        report["token_right"] = (logits.argmax(-1) == truth).float().mean().item()
        report["place_off"] = (guesses.argmax(-1) - bins).abs().median().item() if len(bins) else 0.0
        if looks:
            once = seen_once(wanted)
            right = seen.looks[-1][once].argmax(-1) == wanted[once].argmax(-1)
            report["look_right"] = right.float().mean().item()
    return losses["token"] + losses["place"] + losses["side"] + POINTER * losses["look"] + PLACE * losses["read"]


def seen_once(pointers: Tensor) -> Tensor:
    """The positions that are to look at one place."""
    return pointers.amax(dim=-1) == 1


def step_loss(
    model: Moondream,
    head: DenseHead,
    batch: dict[str, Tensor],
    tilings: list[tuple[int, int]],
    gate: Gate,
    width: float,
) -> tuple[Tensor, dict[str, float]]:
    """The loss of one batch with bins smoothed to ``width``, and what to log of it."""
    report: dict[str, float] = {}
    features = model.vision.encode(normalise(batch["pixels"], model.dtype))
    image_tokens = model.vision.project(features, tilings)
    wholes = [sum(map(crop_count, tilings[:i])) for i in range(len(tilings))]
    mask = F.binary_cross_entropy_with_logits(head.mask(features[wholes]), batch["masks"])
    report["mask"] = mask.item()
    outputs, centres = head(image_tokens)
    loss = gate.dense * (dense_loss(outputs, centres, batch, report) + MASK * mask)
    if gate.questions:
        seen = image_tokens.detach() if gate.detached else image_tokens
        loss = loss + answer_loss(model, head, seen, batch, width, report)
    report["loss"] = loss.item()
    return loss, report
