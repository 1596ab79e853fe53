from __future__ import annotations

import threading
import time

from photon.engine.gate import ByteGate


def test_holders_fit_together_and_a_large_one_goes_alone() -> None:
    gate, lock = ByteGate(100), threading.Lock()
    held: list[int] = []
    seen: list[tuple[int, ...]] = []

    def work(amount: int) -> None:
        with gate.hold(amount):
            with lock:
                held.append(amount)
                seen.append(tuple(sorted(held)))
            time.sleep(0.01)
            with lock:
                held.remove(amount)

    threads = [threading.Thread(target=work, args=(amount,)) for amount in (40, 40, 40, 60, 250, 10, 100) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(seen) == 21
    assert all(sum(together) <= 100 or len(together) == 1 for together in seen)
    assert any(len(together) > 1 for together in seen)
    assert (250,) in seen


def test_room_comes_back_after_an_error() -> None:
    gate = ByteGate(10)
    for _ in range(3):
        try:
            with gate.hold(10):
                raise KeyError
        except KeyError:
            continue
    with gate.hold(10):
        pass
