"""What an engine is put together from, for one model on one device."""

from __future__ import annotations

from photon.device.device import Device
from photon.engine.adapters import AdapterBank
from photon.engine.captured import CapturedForward
from photon.engine.forward import Forward
from photon.engine.rows import RowTable
from photon.engine.sampling import Sampler
from photon.engine.sizes import Sizes
from photon.engine.slots import Slot, Slots
from photon.kernels.paged import KVPool
from photon.models.load import LoadedModel
from photon.models.region import coordinate_values, size_values
from photon.skills.skill import Decision, SkillContext


def make_sampling(loaded: LoadedModel, decision: Decision, stop_repetition: bool) -> tuple[Sampler, SkillContext]:
    """The sampler, and what skills know of the model."""
    model, tokens, region = loaded.model, loaded.tokens, loaded.model.config.region
    coordinates, sizes = coordinate_values(region.coord_out_dim), size_values(region.size_out_dim // 2)
    # A vocabulary without a coordinate token has no masked choice to make.
    rule: Decision = decision if tokens.grounded else "reference"
    ids = (tokens.eos_id, tokens.coord_id, tokens.size_id)
    sampler = Sampler(model, rule, ids, coordinates.to(model.device), sizes.to(model.device))
    return sampler, SkillContext(tokens, loaded.tokenizer, coordinates.tolist(), sizes.tolist(), stop_repetition)


def make_slots(loaded: LoadedModel, device: Device, sizes: Sizes) -> Slots:
    model = loaded.model
    shape = {"rows": sizes.rows, "staged": sizes.staged, "crops": sizes.slot_crops}
    side, dim = model.config.vision.crop_size, model.config.text.dim
    return Slots([Slot(device, **shape, side=side, dim=dim, dtype=model.dtype) for _ in range(2)])


def make_forward(
    loaded: LoadedModel,
    device: Device,
    sizes: Sizes,
    table: RowTable,
    slots: Slots,
    sampler: Sampler,
    *,
    bank: AdapterBank | None,
    graphs: bool,
) -> Forward:
    """With the key/value pool. ``graphs``: capture what can be captured, now."""
    model, config = loaded.model, loaded.model.config
    text = config.text
    shape = (text.n_layers, text.kv_heads, sizes.pages + 1, sizes.page_size, text.head_dim)
    pool = KVPool(device.buffer(*shape, dtype=model.dtype), device.buffer(*shape, dtype=model.dtype))
    embeddings = device.buffer(sizes.embeddings, config.prefix_len - 1, text.dim, dtype=model.dtype)
    bos_id = loaded.tokens.bos_id
    if not graphs:
        return Forward(model, pool, table, sampler, bos_id=bos_id, embeddings=embeddings, bank=bank)
    return CapturedForward(
        model,
        pool,
        table,
        sampler,
        bos_id=bos_id,
        embeddings=embeddings,
        bank=bank,
        device=device,
        slots=slots,
        sizes=sizes,
    )
