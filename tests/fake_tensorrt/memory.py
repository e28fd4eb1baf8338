"""Memory that the fake SDK hands out."""

from __future__ import annotations


class Memory(bytes):
    """The fake ``IHostMemory``: bytes that tell their size in the SDK's words."""

    @property
    def nbytes(self) -> int:
        return len(self)
