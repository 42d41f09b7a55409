"""A real rspamd judges the mail of deliverability tests."""

import re
import smtplib
import subprocess
import sys
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from mailcheck.checks.deliverability.rspamd import why_symbol_not_counted
from tests.servers.daemon import HOST, Daemon, running_daemon
from tests.servers.rspamd import running_rspamd
from tests.servers.spamd import GTUBE

pytestmark = pytest.mark.end_to_end

MAIL = (
    b"From: Ann <ann@sender.example>\r\nTo: <%s>\r\nSubject: Minutes of Monday\r\n"
    b"Date: %s\r\nMessage-ID: <1@sender.example>\r\n"
    b"MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n"
    b"Here is what we said on Monday. Shall we meet for lunch at noon?\r\n"
)
SCORES = Path("/etc/rspamd/scores.d")
COVERED = ("policies", "rbl", "surbl", "statistics")
"""Groups of rules that other checks cover as a whole."""


@pytest.fixture(scope="module")
def rspamd() -> Iterator[str]:
    """The URL of a running rspamd."""
    with running_rspamd() as url:
        yield url


def scored(daemon: Daemon, more: bytes = b"") -> Any:
    """Send a mail to a deliverability test; return the completed test."""
    test = daemon.request("POST", "/test/generate").json
    mail = MAIL % (test["email"].encode(), formatdate().encode()) + more
    with smtplib.SMTP(HOST, daemon.smtp_port) as smtp:
        smtp.sendmail("ann@sender.example", test["email"], mail)
    return daemon.get(f"/test/{test['testId']}/wait", timeout=60).json


def findings_of_doctor(daemon: Daemon) -> str:
    """Return the findings of ``mailcheck doctor``."""
    command = [str(Path(sys.executable).with_name("mailcheck")), "doctor", "--json"]
    return subprocess.run(
        command,
        env=daemon.environment,
        cwd=daemon.folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    ).stdout


def test_rspamd_without_spamassassin(tmp_path: Path, rspamd: str) -> None:
    """A clean mail passes, and GTUBE is spam that costs as much as SpamAssassin's threshold."""
    with running_daemon(tmp_path, spamassassin_spamd="off", rspamd_url=rspamd) as daemon:
        found = scored(daemon)
        result = found["report"]["rspamd"]
        assert (result["problem"], result["spam"], result["engine"]) == (None, False, "rspamd")
        assert (result["threshold"], result["inScore"]) == (6.0, True)
        assert result["countedScore"] < 1, result["rules"]
        names = {rule["name"]: rule["description"] for rule in result["rules"]}
        assert names["FROM_EQ_ENVFROM"] == "From address is the same as the envelope"
        assert "rspamd.points" not in [one["id"] for one in found["deductions"]]
        found = scored(daemon, GTUBE)
        result = found["report"]["rspamd"]
        assert (result["spam"], result["rules"][0]["name"]) == (True, "GTUBE")
        points = {one["id"]: one["points"] for one in found["deductions"]}
        assert points["rspamd.points"] == 4.0
        assert found["checks"]["spamassassin"]["problem"] == "off"
        assert "doctor.rspamd" not in findings_of_doctor(daemon)


def test_rspamd_beside_spamassassin(tmp_path: Path, rspamd: str) -> None:
    """With both filters, each has its own result, and only SpamAssassin's costs points."""
    with running_daemon(tmp_path, rspamd_url=rspamd) as daemon:
        found = scored(daemon, GTUBE)
    assert found["checks"]["spamassassin"]["spam"] is True
    assert found["report"]["rspamd"]["spam"] is True
    points = {one["id"]: one["points"] for one in found["deductions"]}
    assert points["spamassassin.points"] == 4.0
    assert "rspamd.points" not in points


def test_an_rspamd_that_is_away(tmp_path: Path) -> None:
    """Without an answer of rspamd, the result is not determined, and the doctor says why."""
    away = "http://127.0.0.1:9"
    with running_daemon(tmp_path, spamassassin_spamd="off", rspamd_url=away) as daemon:
        result = scored(daemon)["report"]["rspamd"]
        assert (result["problem"], result["spam"], result["score"]) == ("unreachable", None, None)
        assert "doctor.rspamd.silent" in findings_of_doctor(daemon)


def test_symbols_of_covered_groups() -> None:
    """Debian's rules about authentication, lists and history are known as not counted."""
    text = "".join((SCORES / f"{group}_group.conf").read_text() for group in COVERED)
    symbols = set(re.findall(r'^\s+"([A-Z0-9_]+)"', text, re.MULTILINE))
    assert len(symbols) > 80
    assert {symbol for symbol in symbols if not why_symbol_not_counted(symbol)} == set()
