"""Measurements of processes and disks for the benchmarks (Linux's /proc)."""

import os
import socket
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

FSYNCS = 200
PORT_DEADLINE = 10.0  # seconds


def processes(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in children for one in processes(int(child)))]


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and its children, in user and system mode."""
    return sum(own_cpu_seconds(one) for one in processes(pid))


def own_cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process alone."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def machine_seconds() -> float:
    """Return the CPU time of all processes of the machine."""
    user, nice, system, _, _, *interrupts = map(
        int, Path("/proc/stat").read_text().split("\n")[0].split()[1:9]
    )
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process and its children, in bytes."""
    return sum(own_resident_bytes(one) for one in processes(pid))


def own_resident_bytes(pid: int) -> int:
    """Return the resident memory of a process alone, in bytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def own_pss_bytes(pid: int) -> int:
    """Return the proportional set size of a process: its memory, with its share of shared pages."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def fsync_milliseconds(folder: Path) -> float:
    """Return the median time that the folder's disk takes to make 4 KiB durable."""
    times = []
    with (folder / "fsync").open("wb", buffering=0) as file:
        for _ in range(FSYNCS):
            file.write(bytes(4096))
            began = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e3


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value that ``percent`` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def wait_for_port(host: str, port: int) -> None:
    """Wait until a server listens on the port."""
    deadline = time.monotonic() + PORT_DEADLINE
    while True:
        try:
            socket.create_connection((host, port), 1.0).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return
