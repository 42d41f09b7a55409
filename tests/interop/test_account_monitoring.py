"""Prometheus' own tool accepts the metrics, the rules and the panels of an account."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.ops.test_ops_monitoring import MONITORING
from tests.servers.programs import find_program
from tests.web.test_web_heartbeats import HOUR, Beating
from tests.web.test_web_watches import Watching

ALERTS = MONITORING / "account-alerts.yml"
DASHBOARD = MONITORING / "account-dashboard.json"
CASES = Path(__file__).parents[1] / "ops" / "account_alerts.test.yml"

pytestmark = pytest.mark.interop


def promtool(*arguments: str, folder: Path, given: bytes = b"") -> None:
    """Run promtool, which must find no problem."""
    program = find_program("promtool", package="prometheus")
    done = subprocess.run(
        [program, *arguments], cwd=folder, input=given, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def metrics_of_accounts() -> bytes:
    """Return the metrics of an account with watches, and of one with heartbeats."""
    watching, beating = Watching(), Beating()
    watching.ask("POST", f"{watching.watch()}/run")
    address = beating.create(everyMinutes=60)
    beating.house.pass_time(HOUR)
    beating.scored.deliver(address)
    beating.look()
    answers = [house.ask("GET", "/metrics").answer() for house in (watching.house, beating.house)]
    beating.close()
    assert all(answer.status == 200 for answer in answers)
    return max((answer.body for answer in answers), key=len)


def test_the_metrics_are_well_formed(tmp_path: Path) -> None:
    """``promtool check metrics`` finds neither a syntax error nor a bad name."""
    promtool("check", "metrics", folder=tmp_path, given=metrics_of_accounts())


def test_the_rules_fire_when_they_should(tmp_path: Path) -> None:
    """Each rule fires in its case, and none does while all is well; the how-to names all."""
    shutil.copy(ALERTS, tmp_path)
    shutil.copy(CASES, tmp_path)
    promtool("check", "rules", ALERTS.name, folder=tmp_path)
    promtool("test", "rules", CASES.name, folder=tmp_path)
    named = re.findall(r"^      - alert: (\w+)$", ALERTS.read_text(), re.M)
    assert named == re.findall(r'alertname="(\w+)"', CASES.read_text())
    page = (MONITORING.parent / "how-to" / "monitor-your-mail.md").read_text()
    assert re.findall(r"^\| `(Mail\w+)` \|", page, re.M) == named


def test_the_panels_are_understood(tmp_path: Path) -> None:
    """Each expression of the dashboard and of the rules asks for metrics that exist."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    texts = [target["expr"] for panel in panels for target in panel["targets"]]
    rules = [{"record": f"panel{number}", "expr": text} for number, text in enumerate(texts)]
    path = tmp_path / "panels.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    promtool("check", "rules", path.name, folder=tmp_path)
    known = set(re.findall(r"^# TYPE (\S+) ", metrics_of_accounts().decode(), re.M))
    asked = re.findall(r"\bmailcheck_\w+", " ".join([*texts, ALERTS.read_text()]))
    assert {name for name in asked if name != "mailcheck"} - known == set()
