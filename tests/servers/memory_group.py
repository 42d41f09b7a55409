"""A cgroup with a limit of memory for the processes of a daemon, and their use of memory."""

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")

LIMITS = {ROOT / "memory": "memory.limit_in_bytes", ROOT: "memory.max"}
"""The file with the limit, by the folder of the hierarchy: of the first version, or the second."""


class MemoryGroup:
    """A cgroup of this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def wrapper(self) -> list[str]:
        """The beginning of a command that runs in the group."""
        join = f'echo $$ > {self._folder}/cgroup.procs && exec "$@"'
        return ["sh", "-c", join, "sh"]

    @property
    def killed(self) -> int:
        """The number of processes that the system has killed for lack of memory."""
        for name in ("memory.events", "memory.oom_control"):
            with contextlib.suppress(OSError):
                lines = (self._folder / name).read_text().splitlines()
                return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
        raise AssertionError("the group does not count")

    @property
    def peak(self) -> int:
        """The highest use of memory so far, in bytes."""
        for name in ("memory.peak", "memory.max_usage_in_bytes"):
            with contextlib.suppress(OSError):
                return int((self._folder / name).read_text())
        return 0


@contextmanager
def memory_group(limit: int) -> Iterator[MemoryGroup | None]:
    """Create a cgroup with a limit in bytes, or yield `None` without permission."""
    for root, name in LIMITS.items():
        folder = root / f"mailcheck-test-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            (folder / name).write_text(str(limit))
        except OSError:  # the hierarchy does not count memory
            folder.rmdir()
            continue
        try:
            yield MemoryGroup(folder)
        finally:
            with contextlib.suppress(OSError):
                folder.rmdir()
        return
    yield None
