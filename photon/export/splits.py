"""Which part of a data set a row belongs to: by a digest of its id, so that it is the same in every export."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from itertools import accumulate

from photon.errors import UsageError

_NAME = re.compile(r"\w[\w-]*")
_SPACE = 1 << 64


@dataclass(frozen=True, slots=True)
class Splits:
    """``names``, and the share of the rows up to the end of each."""

    names: tuple[str, ...]
    ends: tuple[float, ...]

    @classmethod
    def parse(cls, text: str) -> Splits:
        """From ``train=0.8,val=0.2``. Raises ``UsageError``."""
        names, shares = [], []
        for part in text.split(","):
            name, _, share = (piece.strip() for piece in part.partition("="))
            if not _NAME.fullmatch(name):
                raise UsageError(f"--split names {name!r}; write name=share, for example train=0.8,val=0.2")
            try:
                shares.append(float(share))
            except ValueError:
                raise UsageError(f"--split gives {name} the share {share!r}; write a number such as 0.8") from None
            names.append(name)
        if len(set(names)) < len(names):
            raise UsageError(f"--split names one part twice, {text}; name each once")
        if not all(share > 0 for share in shares) or abs(sum(shares) - 1) > 1e-6:
            raise UsageError(f"--split {text} comes to {sum(shares):g}; the shares are above 0 and come to 1")
        return cls(tuple(names), tuple(accumulate(shares)))

    def of(self, row_id: str) -> str:
        """Rows of one id share a part, and so do a row's copies in another run."""
        place = int.from_bytes(hashlib.sha256(row_id.encode()).digest()[:8]) / _SPACE
        return next((name for name, end in zip(self.names, self.ends, strict=True) if place < end), self.names[-1])
