"""Metrics in the format of Prometheus. Loaded at the first request: it takes 60 ms and some MB."""

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
    """Writes the metrics of mailcheck and the standard metrics of a Python process."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Ours(metrics))
        ProcessCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    def write(self, accept: str) -> tuple[str, bytes]:
        """Return media type and text, in the format that the client prefers."""
        encode, media_type = choose_encoder(accept)
        return media_type, encode(self._registry)


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
