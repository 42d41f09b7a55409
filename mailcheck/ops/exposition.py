"""Metrics in Prometheus' words. Loaded by the first who asks: it takes 60 ms and some megabytes."""

from collections.abc import Iterable, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from mailcheck.core.instruments import Distribution, Kind, Metric

INFINITY = "+Inf"

FAMILIES: dict[Kind, Any] = {
    Kind.COUNTER: CounterMetricFamily,
    Kind.GAUGE: GaugeMetricFamily,
    Kind.DISTRIBUTION: HistogramMetricFamily,
}


class Exposition:
    """Writes our metrics, and those that every Python process has."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Ours(metrics))
        ProcessCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    def write(self, accept: str) -> tuple[str, bytes]:
        """Give media type and text, in the format that the client prefers."""
        encode, media_type = choose_encoder(accept)
        return media_type, encode(self._registry)


class _Ours(Collector):
    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def describe(self) -> Iterable[Family]:
        """Name them without reading any."""
        return map(_family, self._metrics)

    def collect(self) -> Iterable[Family]:
        """Read all."""
        for metric in self._metrics:
            family = _family(metric)
            for labels, value in metric.read().items():
                if isinstance(value, Distribution):
                    family.add_metric(labels, buckets=_buckets(value), sum_value=value.total)
                else:
                    family.add_metric(labels, value)
            yield family


def _family(metric: Metric) -> Any:
    return FAMILIES[metric.kind](metric.name, metric.text, labels=metric.labels)


def _buckets(distribution: Distribution) -> list[tuple[str, float]]:
    """Give how many values there were up to each bound, as Prometheus counts."""
    bounds = [*map(str, distribution.bounds), INFINITY]
    so_far, buckets = 0, []
    for bound, count in zip(bounds, distribution.buckets, strict=True):
        so_far += count
        buckets.append((bound, float(so_far)))
    return buckets
