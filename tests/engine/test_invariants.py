"""The engine's invariants on the virtual device: order proved by the checker, answers equal, everything home.

Requests, their arrival, the batch, the pool and the order of execution are drawn; the model is real code at micro size.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from photon.device.virtual import VirtualDevice
from tests.engine import micro

ASK = st.tuples(
    st.sampled_from(["detect", "point", "query", "caption"]), st.integers(0, 3), st.integers(0, 40), st.booleans()
)


@settings(max_examples=12, deadline=None)
@given(
    asks=st.lists(ASK, min_size=1, max_size=14),
    seed=st.integers(0, 2**32),
    depth=st.sampled_from([1, 2]),
    max_batch=st.integers(1, 6),
    spare=st.integers(0, 12),
    entries=st.integers(1, 3),
)
def test_answers_are_those_of_a_lone_request_and_everything_comes_home(
    asks: list[tuple[str, int, int, bool]], seed: int, depth: int, max_batch: int, spare: int, entries: int
) -> None:
    """Invariants 1 to 7: ``run`` itself checks that pages, rows, slots and ring are home."""
    base = micro.sizes(max_batch)
    tight = {"pages": base.prefix_pages + base.suffix_pages + spare, "rows": max_batch + 1}
    engine = micro.checked(
        VirtualDevice(seed=seed), depth=depth, max_batch=max_batch, embeddings=entries, ring=entries, **tight
    )
    wanted = {}
    requests = []
    for id, (skill, picture, wording, bare) in enumerate(asks):
        about = None if bare and skill == "query" else picture
        wanted[id] = micro.alone(skill, about, wording)
        requests.append(micro.request(id, skill, about, wording))
    results = list(engine.run(requests))
    assert sorted(result.id for result in results) == list(wanted)
    for result in results:
        assert micro.answer(result) == wanted[result.id]
