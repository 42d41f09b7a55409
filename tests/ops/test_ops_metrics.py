"""``/metrics``: Prometheus reads the values that were counted."""

import resource
import time
from typing import Any

import pytest
import pytest_twisted
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as classic
from treq.testing import StubTreq
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from mailcheck.core.memory.instruments import Distribution, Kind, Metric, Tally
from mailcheck.ops.metrics_site import MetricsSite

OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


def made_metrics() -> list[Metric]:
    """Return metrics of each kind, with characters that must be escaped."""
    tally, seconds = Tally(), Distribution((0.1, 1.0))
    tally.add("250", 'quote " and \\ and \n')
    for value in (0.05, 0.5, 0.5, 7.0):
        seconds.observe(value)
    return [
        Metric("x_mails", "Mails.", Kind.COUNTER, ("reply", "why"), lambda: {**tally.counts}),
        Metric("x_parked", "Parked.", Kind.GAUGE, (), lambda: {(): 3.0}),
        Metric("x_seconds", "Time.", Kind.DISTRIBUTION, (), lambda: {(): seconds}),
        Metric("x_nothing", "Nothing yet.", Kind.GAUGE, ("subject",), dict),
    ]


async def ask(accept: str) -> tuple[str, dict[tuple[str, ...], float]]:
    """Request the page. Return its media type and the samples by name and labels."""
    treq: Any = StubTreq(MetricsSite(made_metrics()).resource)
    response = await treq.get("http://ops/metrics", headers={"Accept": accept})
    assert response.code == 200
    text = await response.text()
    parse: Any = open_metrics if accept == OPEN_METRICS else classic
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in parse(text)
        for sample in family.samples
    }
    return response.headers.getRawHeaders("Content-Type")[0], samples


@pytest.mark.parametrize(
    ("accept", "media_type"), [("*/*", "text/plain"), (OPEN_METRICS, "application/openmetrics")]
)
@pytest_twisted.ensureDeferred
async def test_what_was_counted(accept: str, media_type: str) -> None:
    """Counters, gauges and histograms are rendered in the requested format."""
    content_type, samples = await ask(accept)
    assert content_type.startswith(media_type)
    ours = {key: value for key, value in samples.items() if key[0].startswith("x_")}
    assert ours == {
        ("x_mails_total", "250", 'quote " and \\ and \n'): 1.0,
        ("x_parked",): 3.0,
        ("x_seconds_bucket", "0.1"): 1.0,
        ("x_seconds_bucket", "1.0"): 3.0,
        ("x_seconds_bucket", "+Inf"): 4.0,
        ("x_seconds_sum",): 8.05,
        ("x_seconds_count",): 4.0,
    }
    assert samples["process_open_fds",] > 0
    assert samples["process_max_fds",] == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert samples["process_virtual_memory_bytes",] > samples["process_resident_memory_bytes",] > 0
    assert 0 < samples["process_cpu_seconds_total",] <= time.process_time()
    assert 0 <= time.time() - samples["process_start_time_seconds",] < 24 * 3_600


def test_no_version_is_named() -> None:
    """No answer names the software of the server."""
    connection: Any = MetricsSite(made_metrics()).buildProtocol(None)
    transport = StringTransport()
    connection.makeConnection(transport)
    connection.dataReceived(b"GET /metrics HTTP/1.1\r\nHost: ops\r\n\r\n")
    connection.connectionLost(Failure(ConnectionDone()))
    answer = transport.value().lower()
    assert answer.startswith(b"http/1.1 ")
    assert b"server:" not in answer
    assert b"twisted" not in answer
