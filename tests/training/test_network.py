"""What is trained is what is run: the packed forward against the engine's, and batches against the skills' protocol."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from photon import Engine, Image, Request
from photon.models.config import MoondreamConfig
from photon.models.load import LoadedModel
from photon.models.moondream import COORDINATE, SIZE, TOKEN, Moondream
from photon.models.region import coordinate_values, size_values
from tests.models.test_text import Paged
from tests.reference import crops
from training.batches import (
    IGNORED,
    NOTHING,
    context,
    fed_coordinate,
    fed_size,
    make_batch,
    make_segment,
    patch_of,
    patch_targets,
    prompt_ids,
)
from training.gates import GATES
from training.network import fresh_model, run_rows
from training.questions import all_phrases, questions
from training.scene import KINDS, Question
from training.scenes import MIXED, make_scene
from training.shape import BINS, SECTIONS, SMOKE_SECTIONS, as_config
from training.vocabulary import SPECIAL, WORDS, build, token_section, words

BYTES_SHIPPED = 15_000_000
PICTURE = "noise_160x200"


@pytest.fixture(scope="module")
def config() -> MoondreamConfig:
    return as_config(SMOKE_SECTIONS, token_section())


@pytest.fixture(scope="module")
def model(config: MoondreamConfig) -> Moondream:
    fresh = fresh_model(config, 3)
    with torch.no_grad():
        fresh.text.wte.mul_(5)
        fresh.text.lm_head.weight.mul_(20)
        fresh.region.coord_decoder.fc2.weight.mul_(20)
        fresh.region.size_decoder.fc2.weight.mul_(20)
        fresh.text.lm_head.bias[context().tokens.coord_id] = 100  # so that there is always one more object
    return fresh.requires_grad_(False)


@pytest.fixture(scope="module")
def folder(model: Moondream, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    save_file({f"model.{name}": w.contiguous() for name, w in model.state_dict().items()}, path / "model.safetensors")
    (path / "config.json").write_text(json.dumps({**SMOKE_SECTIONS, "tokenizer": token_section()}))
    build().save(str(path / "tokenizer.json"))
    return path


def image_tokens(model: Moondream) -> Tensor:
    pixels, tiling = crops(PICTURE, model.config.vision)
    return model.vision(pixels, [tiling])


def run_segments(model: Moondream, segments: list[tuple[Tensor, Tensor, Tensor]]) -> list[Tensor]:
    """Hidden states of (ids, kinds, values) packed into one row behind the picture."""
    lengths = [len(ids) for ids, _, _ in segments]
    x = torch.cat([model.embed(*segment) for segment in segments])[None]
    positions = torch.cat([torch.arange(n) for n in lengths])[None] + model.config.prefix_len
    numbers = torch.cat([torch.full((n,), i) for i, n in enumerate(lengths)])[None]
    hidden = run_rows(model, image_tokens(model), x, positions, numbers).hidden[0]
    return list(hidden.split(lengths))


def some_inputs(n: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    kinds = torch.randint(0, 3, (n,), generator=draw)
    assert {TOKEN, COORDINATE, SIZE} <= set(kinds.tolist())
    return torch.randint(0, 500, (n,), generator=draw), kinds, torch.rand(n, 2, generator=draw)


@torch.inference_mode()
def test_packed_rows_equal_the_paged_forward(model: Moondream) -> None:
    """Hidden states, logits and region logits, several questions in a row against one at a time over pages."""
    segments = [some_inputs(n, seed) for n, seed in ((9, 1), (14, 2), (8, 5))]
    packed = run_segments(model, segments)
    for segment, ours in zip(segments, packed, strict=True):
        paged = Paged(LoadedModel(model, context().tokens, words(), ""), PICTURE)
        _, theirs = paged.prefill(model.embed(*segment))
        for head in (
            model.text.logits,
            model.region.coordinate_logits,
            model.region.size_logits,
        ):
            expected = head(theirs)
            assert torch.allclose(head(ours), expected, rtol=0, atol=1e-4 * expected.abs().max().item())


@torch.inference_mode()
@pytest.mark.parametrize("skill", ["detect", "point"])
def test_the_engine_picks_what_the_network_ranks_first(model: Moondream, folder: Path, skill: str) -> None:
    """Fed the engine's own answer, the network's likeliest bins are that answer."""
    crop = PIL.Image.open(Path(__file__).parents[1] / "goldens" / "images" / f"{PICTURE}.png").convert("RGB")
    engine = Engine.load(str(folder), device="cpu", dtype="float32", stop_repetition=False)
    try:
        request = Request(0, Image(crop), skill, "red circle", max_objects=4)  # type: ignore[arg-type]
        (result,) = engine.run([request])
    finally:
        engine.close()
    assert result.error is None
    places = result.objects if skill == "detect" else result.points
    assert places is not None
    assert len(places) == 4
    coordinates, sizes = coordinate_values(BINS), size_values(BINS)
    ids = prompt_ids(Question(skill, "red circle"))  # type: ignore[arg-type]
    kinds, values = [TOKEN] * len(ids), [(0.0, 0.0)] * len(ids)
    wanted: list[tuple[int, str, list[int]]] = []  # position, head, bins
    for place in places:
        if skill == "detect":
            box = (place.x_min, place.y_min, place.x_max, place.y_max)  # type: ignore[union-attr]
            x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
        else:
            x, y = place.x, place.y  # type: ignore[union-attr]
        for value in (x, y):
            bin_ = int((coordinates - value).abs().argmin())
            wanted.append((len(ids) - 1, "coordinate", [bin_]))
            ids.append(5)
            kinds.append(COORDINATE)
            values.append((coordinates[bin_].item(), 0.0))
        if skill == "detect":
            sides = [int((sizes - side).abs().argmin()) for side in (box[2] - box[0], box[3] - box[1])]
            wanted.append((len(ids) - 1, "size", sides))
            ids.append(6)
            kinds.append(SIZE)
            values.append((sizes[sides[0]].item(), sizes[sides[1]].item()))
    (hidden,) = run_segments(model, [(torch.tensor(ids), torch.tensor(kinds), torch.tensor(values))])
    heads = {"coordinate": model.region.coordinate_logits, "size": model.region.size_logits}
    found = [heads[head](hidden[at]).argmax(-1).reshape(-1).tolist() for at, head, _ in wanted]
    assert found == [bins for _, _, bins in wanted]
    assert len({tuple(bins) for bins in found}) > 2  # the weights tell places apart


def test_segment_follows_the_protocol() -> None:
    scene = make_scene(11, MIXED)
    grid = 8
    rng = np.random.default_rng(0)
    kinds_seen = set()
    for question in questions(scene, rng, 30):
        segment = make_segment(question, scene, grid, rng)
        prompt = prompt_ids(question)
        assert segment.ids[: len(prompt)] == prompt
        kinds_seen.add(question.skill)
        if question.skill in ("query", "caption"):
            targets = [t for t in segment.tokens if t != IGNORED]
            assert words().decode(targets[:-1]) == question.text
            assert targets[-1] == 0
            continue
        places = question.boxes if question.skill == "detect" else question.points
        per_place = 3 if question.skill == "detect" else 2
        assert len(segment.ids) == len(prompt) + per_place * len(places)
        decisions = [t for t in segment.tokens if t != IGNORED]
        assert decisions == [5] * len(places) + [0]
        at = len(prompt) - 1
        for place in places:
            centre = place if len(place) == 2 else ((place[0] + place[2]) / 2, (place[1] + place[3]) / 2)
            assert segment.coordinates[at : at + 2] == pytest.approx(centre)
            assert segment.kinds[at + 1 : at + 3] == [COORDINATE, COORDINATE]
            assert segment.values[at + 1][0] == fed_coordinate(centre[0])
            assert segment.pointers[at] == [1 + patch_of(centre, grid)]
            assert segment.places[at][:2] == segment.places[at + 1][:2] == pytest.approx(centre)
            at += per_place
    assert kinds_seen == {"detect", "point", "query", "caption"}


def test_fed_values_are_those_of_bins() -> None:
    coordinates, sizes = coordinate_values(BINS).tolist(), size_values(BINS).tolist()
    for value in (0.0, 0.1234, 0.5, 0.999, 1.0):
        assert fed_coordinate(value) in coordinates
        assert fed_coordinate(value) == pytest.approx(value, abs=1 / BINS)
    for value in (0.001, 0.08, 0.5, 1.0):
        assert min(abs(size - fed_size(value)) for size in sizes) < 1e-6
        assert fed_size(value) == pytest.approx(value, rel=0.02)


def test_batches_are_reproducible() -> None:
    vision = as_config(SMOKE_SECTIONS, token_section()).vision
    one, two = (make_batch(range(40, 44), GATES["g3"], vision) for _ in range(2))
    for name in ("pixels", "ids", "values", "tokens", "pointers", "patch_kinds"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name
    assert set(np.unique(one.pointers.sum(-1)).round(4)) <= {0.0, 1.0}
    assert one.ids.shape[1] <= GATES["g3"].tokens


def test_patches_know_their_things() -> None:
    scene = make_scene(5, MIXED)
    kinds, colours, places, centres = patch_targets(scene, 8)
    assert ((kinds == NOTHING) == (colours == IGNORED)).all()
    for thing in scene.objects:
        patch = patch_of(thing.centre, 8)
        sharing = [other for other in scene.objects if patch_of(other.centre, 8) == patch]
        if len(sharing) == 1:
            assert kinds[0, patch] == KINDS.index(thing.kind)
            assert abs(places[0, patch, :2]).max() <= 0.5001
            assert centres[patch] == pytest.approx(thing.centre)


def test_weights_fit_the_box() -> None:
    model = Moondream(as_config(SECTIONS, token_section()))
    assert 2 * sum(p.numel() for p in model.parameters()) <= BYTES_SHIPPED


def test_vocabulary() -> None:
    tokenizer = words()
    assert [tokenizer.id_of(token) for token in SPECIAL] == list(range(10))
    assert tokenizer.size <= SECTIONS["text"]["vocab_size"]
    for word in (*WORDS, *"0123456789"):
        assert len(tokenizer.encode(word)) == 1
    for phrase in all_phrases():
        assert tokenizer.decode(tokenizer.encode(phrase)) == phrase
    assert build().to_str() == build().to_str()
