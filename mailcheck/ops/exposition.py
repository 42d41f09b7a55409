"""Metrics in the format of Prometheus. Loaded at the first request: it takes 60 ms and some MB."""

import os
import resource
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, GCCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.exposition import choose_encoder, generate_latest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from mailcheck.core.memory.instruments import Distribution, Kind, Metric

INFINITY = "+Inf"

OWN = Path("/proc/self")

STARTED = 19
"""The start time among the fields of proc_pid_stat(5) that follow the name of the program."""

FAMILIES: dict[Kind, Any] = {
    Kind.COUNTER: CounterMetricFamily,
    Kind.GAUGE: GaugeMetricFamily,
    Kind.DISTRIBUTION: HistogramMetricFamily,
}


class Exposition:
    """Writes the metrics of mailcheck and the standard metrics of a Python process."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Ours(metrics))
        self._registry.register(_Process())
        GCCollector(registry=self._registry)

    def write(self, accept: str) -> tuple[str, bytes]:
        """Return media type and text, in the format that the client prefers."""
        encode, media_type = choose_encoder(accept)
        return media_type, encode(self._registry)


def write_metrics(metrics: Sequence[Metric]) -> bytes:
    """Return the text of some metrics, in the format that all versions of Prometheus read."""
    registry = CollectorRegistry()
    registry.register(_Ours(metrics))
    return generate_latest(registry)


class _Ours(Collector):
    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def describe(self) -> Iterable[Family]:
        """Return the names of the metrics without reading values."""
        return map(_family, self._metrics)

    def collect(self) -> Iterable[Family]:
        """Read all values."""
        for metric in self._metrics:
            family = _family(metric)
            for labels, value in metric.read().items():
                if isinstance(value, Distribution):
                    family.add_metric(labels, buckets=_buckets(value), sum_value=value.total)
                else:
                    family.add_metric(labels, value)
            yield family


class _Process(Collector):
    """The standard metrics of a process, from its own files in /proc.

    The collector of prometheus_client also needs /proc/stat, which ``ProcSubset=pid`` hides.
    Without /proc, as on macOS, only some of them exist.
    """

    def describe(self) -> Iterable[Family]:
        """Return no names, since they depend on the machine."""
        return []

    def collect(self) -> Iterable[Family]:
        """Read all values."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        yield CounterMetricFamily(
            "process_cpu_seconds", "CPU time in seconds.", value=used.ru_utime + used.ru_stime
        )
        yield GaugeMetricFamily("process_max_fds", "Maximum number of open files.", value=files)
        with suppress(OSError):
            opened = sum(1 for _ in (OWN / "fd").iterdir())
            yield GaugeMetricFamily("process_open_fds", "Number of open files.", value=opened)
            virtual, resident, *_ = map(int, (OWN / "statm").read_text("ascii").split())
            for name, pages in (("virtual", virtual), ("resident", resident)):
                octets = pages * resource.getpagesize()
                text = f"Memory size of the process ({name}), in bytes."
                yield GaugeMetricFamily(f"process_{name}_memory_bytes", text, value=octets)
            ticks = int((OWN / "stat").read_text("ascii").rpartition(")")[2].split()[STARTED])
            booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
            yield GaugeMetricFamily(
                "process_start_time_seconds",
                "Start of the process, in seconds since 1970.",
                value=booted + ticks / os.sysconf("SC_CLK_TCK"),
            )


def _family(metric: Metric) -> Any:
    return FAMILIES[metric.kind](metric.name, metric.text, labels=metric.labels)


def _buckets(distribution: Distribution) -> list[tuple[str, float]]:
    """Return the cumulative counts up to each bound, as Prometheus expects them."""
    bounds = [*map(str, distribution.bounds), INFINITY]
    so_far, buckets = 0, []
    for bound, count in zip(bounds, distribution.buckets, strict=True):
        so_far += count
        buckets.append((bound, float(so_far)))
    return buckets
