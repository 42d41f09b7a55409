"""No text of a mail, a record, a report or a server can control a terminal."""

import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.cli.main import run
from mailcheck.cli.terminal import CLEAR_LINE, show_controls
from mailcheck.cli.texts.check_texts import (
    describe_blocklists,
    describe_domain,
    describe_mx,
    describe_reputation,
)
from mailcheck.core.network_addresses import parse_ip_address
from mailcheck.operations.domains.compute_reputation import ReputationQuery
from tests.cli.command_line import Screen, on_screen, run_command
from tests.corpus.report_files import FOLDER
from tests.house import run as run_in_house
from tests.servers.http_stub import QuietHandler, serving
from tests.table import rows
from tests.web.checking import checking_house, zone_with

HOSTILE = (
    "bad\x1b]52;c;ZXZpbA==\x07\x1b]0;title\x1b\\\x1b[2J\x1b[35m\x9b35m\x90q\x9c\r\x08\x7f\x00"
    "\u202eexe\u2066\u200f\u061c\u2028"
)
"""Sets clipboard and title, clears the screen, colours, and changes the reading direction."""

_OWN = re.compile(rf"\x1b\[(?:0|1|3[1-4])m|{re.escape(CLEAR_LINE)}")
_STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def steering(shown: str) -> list[str]:
    """Return the control sequences in the output, except mailcheck's own colours."""
    return _STEERS.findall(_OWN.sub("", shown))


MESSAGE_ID = "0198a2c4-7d31-4c55-9f8e-3a6f0c2b1d40"

MAIL: dict[str, Any] = {
    "id": MESSAGE_ID,
    "to": HOSTILE,
    "tag": HOSTILE,
    "from": {"address": HOSTILE, "name": HOSTILE},
    "subject": HOSTILE,
    "receivedAt": "2026-11-21T12:00:00.000Z",
    "codes": [HOSTILE],
    "links": [HOSTILE],
    "bestLink": HOSTILE,
    "text": f"first line\n\t{HOSTILE}",
    "html": HOSTILE,
    "headers": {"subject": HOSTILE},
    "attachments": [],
}
_ALERT = {
    "target": HOSTILE,
    "sentence": HOSTILE,
    "openedAt": "2026-11-21T12:00:00.000Z",
    "endedAt": None,
}
WATCH: dict[str, Any] = {
    "id": "w1",
    "target": HOSTILE,
    "paused": False,
    "everyMinutes": 60,
    "lastRunAt": None,
    "score": 1,
    "grade": HOSTILE,
    "alerts": [_ALERT],
    "problems": [{"sentence": f"{HOSTILE} too"}],
    "undetermined": [HOSTILE],
    "receivers": [{"problem": HOSTILE, "to": HOSTILE, "state": HOSTILE}],
}
ANSWERS: list[tuple[str, dict[str, Any]]] = [
    (f"/messages/{MESSAGE_ID}", MAIL),
    ("/messages", {"messages": [MAIL], "total": 1, "nextPage": None}),
    ("/wait", MAIL),
    ("/address", {"address": HOSTILE, "mailbox": "m", "domain": "d", "tag": "t", "cursor": "c"}),
    ("/test/generate", {"testId": "t1", "email": HOSTILE, "expiresAt": HOSTILE}),
    ("/history", {"hosts": [{"host": HOSTILE, "uptime": 1.0}], "changes": []}),
    ("/watches/many", {"made": [WATCH], "refused": [], "newWebhooks": []}),
    ("/watches/w1", WATCH),
    ("/watches", {"watches": [WATCH], "openAlerts": [_ALERT]}),
    ("/test", {"delivered": False, "problem": HOSTILE}),
    (
        "/webhooks",
        {
            "webhooks": [
                {
                    "id": "h1",
                    "state": HOSTILE,
                    "cursor": "c",
                    "url": HOSTILE,
                    "filter": {"tag": HOSTILE},
                    "failures": 1,
                    "problem": HOSTILE,
                }
            ]
        },
    ),
    ("/inbox", {"mailServer": HOSTILE}),
]


@contextmanager
def hostile_daemon(status: int = 200) -> Iterator[tuple[str, ...]]:
    """Run a service that answers like a daemon with hostile texts, and yield the options for it."""

    class Hostile(QuietHandler):
        def do_GET(self) -> None:
            """Answer any request."""
            path = self.path.partition("?")[0]
            found = next((body for end, body in ANSWERS if path.endswith(end)), {})
            body = json.dumps(found if status == 200 else {"error": HOSTILE}).encode()
            if path.endswith("/raw"):
                body = HOSTILE.encode()
            self.send_answer(body, status)

        def do_POST(self) -> None:
            """Answer any request."""
            self.do_GET()

    with serving(Hostile) as url:
        Path("key").write_text("mck_" + "a" * 32)
        yield ("--url", url, "--key-file", "key")


DAEMON_COMMANDS = [
    ("inbox",),
    ("inbox", MESSAGE_ID),
    ("inbox", MESSAGE_ID, "--json"),
    ("inbox", "--json"),
    ("inbox", "--jsonl"),
    ("inbox", MESSAGE_ID, "--code"),
    ("inbox", MESSAGE_ID, "--link"),
    ("wait",),
    ("wait", "--new"),
    ("wait", "--new", "--json"),
    ("new",),
    ("new", "--json"),
    ("test", "--no-wait"),
    ("test", "--no-wait", "--json"),
    ("watch", "list"),
    ("watch", "show", "w1"),
    ("watch", "add", "x.example"),
    ("webhook", "list"),
    ("webhook", "list", "--json"),
    ("webhook", "test", "h1"),
]


@rows(*DAEMON_COMMANDS)
def test_what_a_daemon_answers_is_shown_and_not_obeyed(command: tuple[str, ...]) -> None:
    """On a terminal every command shows a daemon's hostile responses without control characters."""
    with hostile_daemon() as options:
        shown = on_screen(*command, *options)
    assert "bad\\u001b]52" in shown
    assert steering(shown) == []


REFUSED_COMMANDS = sorted({command[:2] for command in DAEMON_COMMANDS} | {("send-sample",)})
ARGUMENTS = {("wait",): "--new", ("watch", "show"): "w1", ("watch", "add"): "x.example"}
ARGUMENTS[("webhook", "test")] = "h1"


@rows(*REFUSED_COMMANDS)
def test_what_a_daemon_refuses_is_shown_and_not_obeyed(command: tuple[str, ...]) -> None:
    """The error of a server is cleaned as well."""
    more = (ARGUMENTS[command],) if command in ARGUMENTS else ()
    with hostile_daemon(400) as options:
        shown = on_screen(*command, *more, *options)
    assert "bad\\u001b]52" in shown
    assert steering(shown) == []


def test_a_pipe_gets_the_exact_text() -> None:
    """Output that is not a terminal gets every character of a mail unchanged."""
    with hostile_daemon() as options:
        assert f"first line\n\t{HOSTILE}" in run_command("inbox", MESSAGE_ID, *options).output


RAW_COMMANDS = [("inbox", MESSAGE_ID, "--raw"), ("inbox", "--raw"), ("wait", "--raw")]


@rows(*RAW_COMMANDS)
def test_raw_gives_the_exact_bytes(command: tuple[str, ...]) -> None:
    """``--raw`` writes the mail byte for byte, to a file and to a terminal."""
    data = io.BytesIO()
    output = io.TextIOWrapper(data)
    with hostile_daemon() as options:
        run([*command, *options], output, io.StringIO())
        shown = on_screen(*command, *options)
    assert data.getvalue() == HOSTILE.encode()
    assert HOSTILE in shown


def _described(work: Callable[[Any], Any], describe: Callable[[Any], Any]) -> str:
    record = f'"v=spf1 {HOSTILE} -all"'
    zone = zone_with(
        {
            "good.example": {"MX": ["10 mx.good.example."], "TXT": [record]},
            "_dmarc.good.example": {"TXT": [f"v=DMARC1; p={HOSTILE}; rua=mailto:{HOSTILE}"]},
            "10.4.8.8.zen.spamhaus.org": {"A": ["127.0.0.2"], "TXT": [HOSTILE]},
        }
    )
    house = checking_house(zone)
    screen = Screen()
    try:
        screen.console().print_lines(describe(run_in_house(work(house.assembly.checks))))
    finally:
        house.close()
    return screen.read()


CHECKS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "mx": (lambda checks: checks.mx.check("good.example"), describe_mx),
    "blacklist": (
        lambda checks: checks.blocklists.check(parse_ip_address("8.8.4.10")),
        describe_blocklists,
    ),
    "reputation": (
        lambda checks: checks.reputation.compute(ReputationQuery("good.example")),
        describe_reputation,
    ),
    "domain": (lambda checks: checks.domain.describe("good.example", ()), describe_domain),
}


@rows(*CHECKS)
def test_what_dns_answers_is_shown_and_not_obeyed(command: str) -> None:
    """Records and reasons of blocklists cannot control the terminal."""
    shown = _described(*CHECKS[command])
    assert "bad" in shown or command == "blacklist"  # which shows no reasons
    assert steering(shown) == []


@pytest.mark.parametrize("command", ["dmarc", "tls-report"])
def test_what_reports_say_is_shown_and_not_obeyed(command: str, tmp_path: Path) -> None:
    """Names in reports and in file names cannot control the terminal."""
    names = {"dmarc": ("google.xml", "google.com"), "tls-report": ("microsoft.json", "Microsoft")}
    name, old = names[command]
    text = (FOLDER / name).read_text()
    assert old in text
    # XML has no other control characters.
    inserted = "bad\u009b35m\u202e" if command == "dmarc" else json.dumps(HOSTILE)[1:-1]
    (tmp_path / "report").write_text(text.replace(old, inserted))
    more = ("--offline",) if command == "dmarc" else ()
    shown = on_screen(command, *more, str(tmp_path / "report"), "no\x1b[2Jfile")
    assert "bad" in shown
    assert "no\\u001b[2Jfile" in shown
    assert steering(shown) == []


def test_a_wrong_option_is_cleaned() -> None:
    """Arguments in the messages of the command line's parser cannot control the terminal."""
    shown = on_screen("inbox", "--limit", HOSTILE)
    assert "bad" in shown
    assert steering(shown) == []


def test_one_line_stays_one_line() -> None:
    """A line feed in a one-line text cannot start a line that looks like mailcheck's."""
    screen = Screen()
    screen.console().print_line(("subject: ", "a\nb"))
    assert screen.read() == "subject: a\\nb\n"


@given(st.text(st.characters()))
def test_nothing_that_steers_is_left(text: str) -> None:
    """Cleaned text keeps line feeds, tabs and readable characters, without control characters."""
    shown = show_controls(text)
    assert not _STEERS.search(shown)
    assert shown.count("\n") == text.count("\n")
    if not re.search(r"[^ -~\n\t]", text):
        assert shown == text


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_json_keeps_its_meaning(text: str) -> None:
    """JSON that was cleaned has the same values."""
    written = json.dumps({"subject": text}, ensure_ascii=False)
    assert json.loads(show_controls(written)) == {"subject": text}
