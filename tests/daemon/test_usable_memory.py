"""The memory that a daemon may use, read from a folder that stands for the cgroups."""

from pathlib import Path

import pytest

from mailcheck.daemon.usable_memory import usable_memory

MACHINE = 8 << 30
ALL = "9223372036854771712\n"


@pytest.mark.parametrize(
    ("cgroup", "files", "usable"),
    [
        ("0::/\n", {}, MACHINE // 2),
        ("0::/a/b\n", {"a/b/memory.max": "max\n", "a/memory.max": "1000\n"}, 1000),
        ("0::/a/b\n", {"a/b/memory.high": "500\n", "a/b/memory.max": "1000\n"}, 500),
        ("0::/a/b\n", {"a/b/memory.max": "900\n", "a/memory.high": "800\n"}, 800),
        ("0::/a\n", {"b/memory.max": "900\n"}, MACHINE // 2),
        ("0::/host/path\n", {"memory.max": "700\n"}, 700),
        ("0::/a\n", {"a/memory.max": f"{MACHINE}\n"}, MACHINE // 2),
        ("0::/a\n", {"a/memory.max": "nonsense\n"}, MACHINE // 2),
        ("4:memory:/a\n", {"memory/a/memory.limit_in_bytes": "600\n"}, 600),
        ("4:cpu,memory:/x\n", {"memory/memory.limit_in_bytes": "600\n"}, 600),
        ("4:memory:/a\n", {"memory/a/memory.limit_in_bytes": ALL}, MACHINE // 2),
        ("5:cpu:/a\n0::/\n", {"a/memory.max": "600\n"}, MACHINE // 2),
        ("0::/a\n", {"unified/a/memory.max": "600\n"}, 600),
    ],
)
def test_the_smallest_limit(
    tmp_path: Path, cgroup: str, files: dict[str, str], usable: int
) -> None:
    """The smallest limit up the cgroups counts; without one, half of the machine's memory."""
    (tmp_path / "cgroup").write_text(cgroup)
    for name, text in files.items():
        path = tmp_path / "fs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert usable_memory(MACHINE, tmp_path / "cgroup", tmp_path / "fs") == usable


def test_a_system_without_cgroups(tmp_path: Path) -> None:
    """Half of the machine's memory is used where there is no cgroup."""
    assert usable_memory(MACHINE, tmp_path / "none", tmp_path) == MACHINE // 2


def test_this_machine() -> None:
    """The system tells the memory of the machine."""
    assert usable_memory() > 1 << 26
