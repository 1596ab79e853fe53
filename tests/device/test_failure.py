"""Errors as the CUDA runtime and torch word them, told apart."""

from __future__ import annotations

import pytest
import torch

from photon.device.failure import out_of_memory, sticky, told
from photon.errors import EngineError, UsageError

_TAIL = (
    "\nCUDA kernel errors might be asynchronously reported at some other API call.\nCompile with `TORCH_USE_CUDA_DSA`"
)


def accelerator_error(text: str, code: int | None = None) -> torch.AcceleratorError:
    error = torch.AcceleratorError(text + _TAIL)
    if code is not None:
        error.error_code = code  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError(
            "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 23.6 GiB"
        ),
        accelerator_error("CUDA error: out of memory"),
        accelerator_error("CUDA error: in other words", 2),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ],
)
def test_out_of_memory(error: RuntimeError) -> None:
    assert out_of_memory(error)
    assert sticky(error) is None
    answer = told(error)
    assert isinstance(answer, UsageError)
    assert answer.exit_code == 2
    assert "lower engine.max_batch" in str(answer)
    assert str(error).partition("\n")[0] in str(answer)
    assert "DSA" not in str(answer)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CUDA error: device-side assert triggered", 710),
        ("CUDA error: an illegal memory access was encountered", 700),
        ("CUDA error: unspecified launch failure", 719),
        ("CUDA error: misaligned address", 716),
        ("CUDA error: an illegal instruction was encountered", 715),
        ("CUDA error: the launch timed out and was terminated", 702),
        ("CUDA error: uncorrectable ECC error encountered", 214),
        ("CUDA error: unknown error", 999),
    ],
)
def test_sticky(text: str, code: int) -> None:
    """By torch's number where it tells one, by its words alone, and as older torch raises it."""
    for error in (accelerator_error(text), RuntimeError(text + _TAIL), accelerator_error("CUDA error: anything", code)):
        assert sticky(error) == code
        answer = told(error)
        assert isinstance(answer, EngineError)
        assert answer.exit_code == 70
        assert "has to end; start the run again" in str(answer)
        assert ("nvidia-smi -q" in str(answer)) == (code == 214)
        assert ("CUDA_LAUNCH_BLOCKING=1" in str(answer)) == (code != 214)


@pytest.mark.parametrize(
    "error",
    [
        accelerator_error("CUDA error: invalid argument"),
        accelerator_error("CUDA error: device-side assert in the words alone", 1),
        RuntimeError("The size of tensor a (3) must match the size of tensor b (4)"),
        RuntimeError("an unknown error of somebody else's"),
        ValueError("CUDA error: unspecified launch failure"),
    ],
)
def test_neither(error: Exception) -> None:
    assert not out_of_memory(error)
    assert sticky(error) is None
    assert told(error) is None
