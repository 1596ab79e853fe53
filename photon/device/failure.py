"""What an error of a CUDA device means for whoever runs it: out of memory, lost, or neither.

Out of memory leaves the device as it was, so a smaller engine can go on: a ``UsageError``, which says what to make
smaller. Some other errors are sticky: from then on every call in the process fails with the same one, and only a new
process gets the device back: an ``EngineError``. The rest is about one operation and stays what it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from photon.device.device import Device
from photon.errors import DeviceMemoryError, EngineError, PhotonError

_OUT_OF_MEMORY_CODE = 2
_OUT_OF_MEMORY = ("cuda error: out of memory", "cublas_status_alloc_failed", "cudnn_status_alloc_failed")
#: By the number of the runtime's error, where torch tells it, else by the runtime's words for it.
_STICKY = {
    46: "all cuda-capable devices are busy or unavailable",
    214: "uncorrectable ecc error",
    220: "uncorrectable nvlink error",
    700: "illegal memory access",
    702: "launch timed out",
    709: "context is destroyed",
    710: "device-side assert",
    714: "hardware stack error",
    715: "illegal instruction",
    716: "misaligned address",
    717: "operation not supported on global/shared address space",
    718: "invalid program counter",
    719: "unspecified launch failure",
    999: "unknown error",
}
_HARDWARE = (214, 220, 714)


def out_of_memory(error: BaseException) -> bool:
    if isinstance(error, torch.OutOfMemoryError) or _code(error) == _OUT_OF_MEMORY_CODE:
        return True
    return isinstance(error, RuntimeError) and any(words in str(error).lower() for words in _OUT_OF_MEMORY)


def sticky(error: BaseException) -> int | None:
    """The runtime's number of an error after which the process cannot use the device any more; None for others."""
    if not isinstance(error, RuntimeError) or out_of_memory(error):
        return None
    code, text = _code(error), str(error).lower()
    if code is not None:
        return code if code in _STICKY else None
    if "cuda" not in text:
        return None
    return next((code for code, words in _STICKY.items() if words in text), None)


def told(error: BaseException) -> PhotonError | None:
    """The error for the caller, None where the device has nothing to add."""
    if out_of_memory(error):
        return DeviceMemoryError(
            "the CUDA device is out of memory: lower engine.max_batch, or engine.memory_fraction, which leaves more of "
            f"the device's memory for the work itself; is another process on the device? ({_first_line(error)})"
        )
    code = sticky(error)
    if code is None:
        return None
    advice = (
        "this one is the hardware's: see what nvidia-smi -q says of it"
        if code in _HARDWARE
        else "if it comes back, run once with CUDA_LAUNCH_BLOCKING=1, which names the operation"
    )
    return EngineError(
        f"the CUDA device is lost to this process, which has to end; start the run again. {advice} "
        f"({_first_line(error)})"
    )


@contextmanager
def closed_on_error(device: Device) -> Iterator[None]:
    """Close the device if what follows fails, whose error is told as ``told`` says."""
    try:
        yield
    except BaseException as error:
        device.close()
        known = told(error)
        if known is not None:
            raise known from error
        raise


def _code(error: BaseException) -> int | None:
    code = getattr(error, "error_code", None)
    return code if isinstance(code, int) else None


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
