"""Randomness in larger draws: a system call for each identifier would cost more than the rest."""

from mailcheck.core.identifiers import RandomBytes

DRAW = 4_096
"""Bytes asked of the system at a time."""


class RandomPool:
    """Hands out bytes of a source of secrets, each once. For one thread."""

    def __init__(self, source: RandomBytes) -> None:
        self._source = source
        self._bytes = b""
        self._used = 0

    def __call__(self, length: int) -> bytes:
        """Give ``length`` bytes that nobody has got before."""
        if length > len(self._bytes) - self._used:
            self._bytes, self._used = self._source(max(DRAW, length)), 0
        start, self._used = self._used, self._used + length
        return self._bytes[start : self._used]
