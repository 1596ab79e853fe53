"""photon-batch: boxes, points, captions and answers for large image collections.

The public names load on first use, so that ``import photon`` stays free of torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from photon.core import Box, Failure, Image, ImageInfo, Point, Request, Result, Settings

if TYPE_CHECKING:
    from photon.engine.engine import Engine

__version__ = "0.1.0"
__all__ = ["Box", "Engine", "Failure", "Image", "ImageInfo", "Point", "Request", "Result", "Settings"]


def __getattr__(name: str) -> Any:
    if name == "Engine":
        from photon.engine.engine import Engine

        return Engine
    raise AttributeError(f"module 'photon' has no attribute {name!r}")
