"""The alert rules and the dashboard: their metrics exist, and alerts fire when they should."""

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml

from mailcheck.assembly.metrics import list_metrics
from mailcheck.core.memory.instruments import Kind, Metric
from tests.house import House
from tests.servers.daemon import HOST, free_ports, running_daemon
from tests.servers.programs import find_program

ROOT = Path(__file__).parents[2]
MONITORING = ROOT / "docs" / "monitoring"
ALERTS = MONITORING / "alerts.yml"
DASHBOARD = MONITORING / "dashboard.json"
CASES = Path(__file__).with_name("alerts.test.yml")

OF_PROMETHEUS = {"up": {"job", "instance"}}
OF_EVERY_PROCESS = {
    name: {"job", "instance"}
    for name in (
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
        "process_open_fds",
        "process_max_fds",
    )
}
EVERYWHERE = {"job", "instance"}
"""Labels that Prometheus adds to all samples."""

_NAME = re.compile(r"\b(?:mailcheck|process)_\w+\b|\bup\b")
_SELECTED = re.compile(r"\b((?:mailcheck|process)_\w+|up)\{([^}]*)\}")


def expressions() -> list[str]:
    """Return all expressions of the alerts and the dashboard."""
    alerts = yaml.safe_load(ALERTS.read_text())
    dashboard = json.loads(DASHBOARD.read_text())
    return [
        *(rule["expr"] for group in alerts["groups"] for rule in group["rules"]),
        *(target["expr"] for panel in dashboard["panels"] for target in panel["targets"]),
    ]


def our_metrics(house: House) -> list[Metric]:
    """Return all metrics of a daemon."""
    assembly = house.assembly
    connections: Mapping[tuple[str, ...], float] = {("mail",): 1.0}
    return list_metrics(assembly, house.site, lambda: connections, lambda: None, None)


def series_of(metric: Metric) -> Iterator[tuple[str, set[str]]]:
    """Return the names under which Prometheus stores a metric, and its labels."""
    labels = {*metric.labels, *EVERYWHERE}
    if metric.kind is Kind.COUNTER:
        yield f"{metric.name}_total", labels
    elif metric.kind is Kind.GAUGE:
        yield metric.name, labels
    else:
        yield f"{metric.name}_bucket", {*labels, "le"}
        yield f"{metric.name}_sum", labels
        yield f"{metric.name}_count", labels


@pytest.fixture
def metrics(house: House) -> list[Metric]:
    """Return all metrics of a daemon."""
    return our_metrics(house)


def test_every_name_exists(metrics: list[Metric]) -> None:
    """Rules and panels use only metrics and labels that exist."""
    known = {**OF_PROMETHEUS, **OF_EVERY_PROCESS}
    known.update(pair for metric in metrics for pair in series_of(metric))
    asked = {name for text in expressions() for name in _NAME.findall(text)}
    assert asked - known.keys() == set()
    for text in expressions():
        for name, selectors in _SELECTED.findall(text):
            labels = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selectors))
            assert labels <= known[name], (name, labels)


@pytest.mark.interop
def test_alerts_fire_when_they_should(tmp_path: Path) -> None:
    """promtool: each alert fires in its test case, and does not fire while all is well."""
    promtool = find_program("promtool", package="prometheus")
    shutil.copy(ALERTS, tmp_path / "alerts.yml")
    shutil.copy(CASES, tmp_path / "cases.yml")
    for arguments in (["check", "rules", "alerts.yml"], ["test", "rules", "cases.yml"]):
        done = subprocess.run(
            [promtool, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    named = set(re.findall(r"^      - alert: (\w+)$", ALERTS.read_text(), re.M))
    assert named == set(re.findall(r'alertname="(\w+)"', CASES.read_text()))


def test_every_alert_is_explained() -> None:
    """docs/how-to/set-up-alerts.md explains each alert, in the order of the rules."""
    named = re.findall(r"^      - alert: (\w+)$", ALERTS.read_text(), re.M)
    page = (ALERTS.parents[1] / "how-to" / "set-up-alerts.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]+", page, re.M)
    assert rows == named


@pytest.mark.interop
def test_panels_are_understood(tmp_path: Path) -> None:
    """Promtool can parse each expression of the dashboard."""
    promtool = find_program("promtool", package="prometheus")
    panels = json.loads(DASHBOARD.read_text())["panels"]
    texts = [target["expr"] for panel in panels for target in panel["targets"]]
    rules = [
        {"record": f"panel{number}", "expr": text.replace("$__rate_interval", "5m")}
        for number, text in enumerate(texts)
    ]
    path = tmp_path / "panels.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    done = subprocess.run(
        [promtool, "check", "rules", str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.interop
@pytest.mark.end_to_end
def test_a_real_alert(tmp_path: Path) -> None:
    """A real Prometheus scrapes a real daemon whose disk is full, and the alert fires."""
    program, promtool = find_program("prometheus"), find_program("promtool", package="prometheus")
    ours, theirs = free_ports(2)
    rules = re.sub(r"^ *for: .*\n", "", ALERTS.read_text(), flags=re.M)  # no delay of minutes
    (tmp_path / "alerts.yml").write_text(rules)
    scrape = {"job_name": "mailcheck", "static_configs": [{"targets": [f"{HOST}:{ours}"]}]}
    often = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    (tmp_path / "prometheus.yml").write_text(
        yaml.safe_dump({"global": often, "rule_files": ["alerts.yml"], "scrape_configs": [scrape]})
    )
    with running_daemon(tmp_path / "house", ops_listen=f"{HOST}:{ours}", storage_min_free=10**17):
        with urlopen(f"http://{HOST}:{ours}/metrics", timeout=60) as answer:
            text = answer.read()
        done = subprocess.run(
            [promtool, "check", "metrics"], input=text, capture_output=True, check=False
        )
        assert done.stderr == b"", done.stderr
        prometheus = subprocess.Popen(
            [
                program,
                "--config.file=prometheus.yml",
                "--storage.tsdb.path=data",
                f"--web.listen-address={HOST}:{theirs}",
            ],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            alert = awaited_alert(theirs, "MailcheckUnwell")
        finally:
            prometheus.kill()
            prometheus.wait()
    assert alert["labels"]["subject"] == "disk"
    assert alert["state"] == "firing"


def awaited_alert(port: int, name: str) -> dict[str, Any]:
    """Query Prometheus until an alert fires."""
    deadline = time.monotonic() + 60.0
    while time.monotonic() < deadline:
        try:
            with urlopen(f"http://{HOST}:{port}/api/v1/alerts", timeout=5) as answer:
                alerts: list[dict[str, Any]] = json.load(answer)["data"]["alerts"]
        except OSError:
            alerts = []
        for alert in alerts:
            if alert["labels"]["alertname"] == name:
                return alert
        time.sleep(0.05)
    raise AssertionError(f"{name} does not fire")
