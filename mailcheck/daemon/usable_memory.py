"""The memory that this process may use: the limit of its cgroups, or a share of the machine's."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

SHARE = 2
"""Without a limit, the daemon uses one part in this many of the machine's memory."""

LIMITS = ("memory.high", "memory.max", "memory.limit_in_bytes")
"""Files with a limit: of cgroups version 2, and of version 1."""


def usable_memory(
    machine: int | None = None,
    cgroup: Path = Path("/proc/self/cgroup"),
    root: Path = Path("/sys/fs/cgroup"),
) -> int:
    """Return the smallest limit of the cgroups of a process, or half of the machine's memory.

    :param machine: the memory of the machine in octets; `None`: ask the system.
    :param cgroup: the file with the paths of the cgroups, as in proc_pid_cgroup(5).
    :param root: where the hierarchies are mounted.
    """
    if machine is None:
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limits = [limit for folder in _folders(cgroup, root) for limit in _limits_of(folder)]
    return min([limit for limit in limits if limit < machine], default=machine // SHARE)


def _folders(cgroup: Path, root: Path) -> Iterator[Path]:
    """Yield the cgroups that limit the memory of the process, and those above them."""
    text = ""
    with suppress(OSError, ValueError):
        text = cgroup.read_text("utf-8")
    for line in text.splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        mounts = [root, root / "unified"] if not controllers else [root / "memory"]
        if controllers and "memory" not in controllers.split(","):
            continue
        # A path of the host is not there in a container, whose own cgroup is the root.
        for mount in mounts:
            own = mount / path.lstrip("/")
            yield from (folder for folder in (own, *own.parents) if folder.is_relative_to(mount))


def _limits_of(folder: Path) -> Iterator[int]:
    for name in LIMITS:
        with suppress(OSError, ValueError):  # "max" is no limit
            yield int((folder / name).read_text("ascii"))
