"""``mailcheck score``: the envelope of a file, the output, and the exit status."""

import argparse
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.api.deliverability.report import render_report
from mailcheck.api.inbox.checks import render_html_checks, render_pressed
from mailcheck.api.shapes import as_json
from mailcheck.checks.deliverability.content_filter import FilterProblem, unavailable
from mailcheck.checks.deliverability.trace_fields import OwnTrace, read_own_trace
from mailcheck.checks.dns_answers import DnsStatus
from mailcheck.checks.findings import RecordToPublish
from mailcheck.checks.html_checks.check import check_raw_mail
from mailcheck.checks.press_unsubscribe import PressAnswer, judge_press
from mailcheck.cli.score_commands import (
    add_report_options,
    judge_report,
    read_mail_of_file,
    read_records,
)
from mailcheck.cli.texts.score_texts import describe_checks, describe_pressed, describe_report
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.instants import Instant, parse_instant
from tests.cli.command_line import Outcome, plain, run_work
from tests.fakes.blocklist_test_entries import publish_list_test_entries
from tests.fakes.mail_signer import RSA
from tests.fakes.scripted_filter import ScriptedFilter
from tests.operations.scored_mails import ADDRESS, HELO, MAIL, SENDER, received, score, zone_with
from tests.servers.name_server import running_name_server
from tests.table import rows

NOW = Instant(1_800_000_000_000)

POSTFIX = (
    b"Return-Path: <bounce@shop.example>\r\n"
    b"Received: from mx.shop.example (mail.shop.example [192.0.2.7])\r\n"
    b"\tby in.rcpt.example (Postfix) with ESMTPS id 4XyZ\r\n"
    b"\tfor <bob@rcpt.example>; Sat, 21 Nov 2026 10:00:00 +0000\r\n"
)
EXIM = (
    b"Return-path: <>\r\n"
    b"Received: from mail.shop.example ([2001:db8::7] helo=mx.shop.example)\r\n"
    b"\tby in.rcpt.example with esmtps (Exim 4.96); Sat, 21 Nov 2026 10:00:00 +0000\r\n"
)
IPV6 = b"Received: from mx.shop.example (x [IPv6:2001:db8::7]) by y; nonsense\r\n"
AT_TEN = parse_instant("2026-11-21T10:00:00Z")


@rows(
    (POSTFIX, OwnTrace("192.0.2.7", "mx.shop.example", "bounce@shop.example", AT_TEN)),
    (EXIM, OwnTrace("2001:db8::7", "mx.shop.example", "", AT_TEN)),
    (IPV6, OwnTrace("2001:db8::7", "mx.shop.example", None, None)),
    (b"", OwnTrace()),
    (b"Received: by somebody\r\nReturn-Path: nobody\r\n", OwnTrace()),
)
def test_own_trace(header: bytes, trace: OwnTrace) -> None:
    """Return-Path and the topmost Received of common servers contain the envelope."""
    assert read_own_trace(header + MAIL) == trace


@given(st.binary(max_size=400))
def test_any_bytes_have_a_trace(raw: bytes) -> None:
    """Reading never fails, for any bytes."""
    read_own_trace(b"Received: from " + raw)
    read_own_trace(raw)


def options(path: Path, **changes: Any) -> argparse.Namespace:
    """Return the options of a command line."""
    given_ones = {"ip": None, "helo": None, "mail_from": None, "from_headers": False, **changes}
    return argparse.Namespace(file=str(path), **given_ones)


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A mail in a file, as a server has stored it."""
    path = tmp_path / "mail.eml"
    path.write_bytes(POSTFIX + MAIL)
    return path


def test_given_values(stored: Path) -> None:
    """Given options are used, and no values are assumed."""
    found = read_mail_of_file(options(stored, ip="8.8.4.4", helo="h", mail_from="<a@b.c>"), NOW)
    assert found.mail.session.client_ip == "8.8.4.4"
    assert found.mail.session.helo_name == "h"
    assert found.mail.envelope_sender == "a@b.c"
    assert found.mail.received_at == NOW
    assert found.assumed == {}


def test_nothing_is_guessed(stored: Path) -> None:
    """Without a request the header is not read, and the error says which options to give."""
    with pytest.raises(InvalidParameter, match=r"--ip is missing.*--from-headers"):
        read_mail_of_file(options(stored, mail_from="a@b.c"), NOW)
    with pytest.raises(InvalidParameter, match="--mail-from is missing"):
        read_mail_of_file(options(stored, ip="8.8.4.4"), NOW)
    with pytest.raises(InvalidParameter, match=r"none\.eml cannot be read: No such file"):
        read_mail_of_file(options(stored.with_name("none.eml")), NOW)


def test_assumed_values_are_named(stored: Path) -> None:
    """Values read from the header are named, and options take precedence."""
    found = read_mail_of_file(options(stored, from_headers=True, helo="given.example"), NOW)
    assert found.mail.session.helo_name == "given.example"
    assert found.mail.received_at == AT_TEN
    assert found.assumed == {
        "ip": "192.0.2.7",
        "mail-from": "bounce@shop.example",
        "received-at": "2026-11-21T10:00:00.000Z",
    }


def test_a_header_that_does_not_tell(tmp_path: Path) -> None:
    """If the header lacks a value, the error says so."""
    path = tmp_path / "bare.eml"
    path.write_bytes(MAIL)
    with pytest.raises(InvalidParameter, match="do not contain"):
        read_mail_of_file(options(path, from_headers=True), NOW)


def test_the_null_reverse_path(stored: Path) -> None:
    """``<>`` is the empty envelope sender."""
    assert read_mail_of_file(options(stored, ip="::1", mail_from="<>"), NOW).mail == received(
        POSTFIX + MAIL, client_ip="::1", helo_name="", tls=None, envelope_sender="", received_at=NOW
    )


def test_a_bad_address(stored: Path) -> None:
    """An invalid address is a usage error."""
    with pytest.raises(InvalidParameter, match="is not an IP address"):
        read_mail_of_file(options(stored, ip="8.8.4", mail_from="<>"), NOW)


def test_records() -> None:
    """Records are parsed as users type them, and an error names the record."""
    texts = ["example.com TXT v=spf1 mx -all", "mx.example.com  A  192.0.2.1"]
    assert read_records(texts) == (
        RecordToPublish("example.com", "TXT", "v=spf1 mx -all"),
        RecordToPublish("mx.example.com", "A", "192.0.2.1"),
    )
    assert read_records([]) == ()
    with pytest.raises(InvalidParameter, match="--record 2"):
        read_records([texts[0], "example.com TXT"])


def test_exit_statuses() -> None:
    """0 fine, 1 below the limit, 3 undetermined; a missing content filter is the usual case."""
    assert judge_report(as_json(render_report(score())), 8.0) == 0
    worse = score(zone_with(without=["_dmarc.sender.example"]))
    assert [judge_report(as_json(render_report(worse)), mark) for mark in (8.0, 9.0, 9.1)] == [
        0,
        0,
        1,
    ]
    lost = score(zone_with(failing={("sender.example", "TXT"): DnsStatus.TIMEOUT}))
    assert judge_report(as_json(render_report(lost)), 8.0) == 3
    for problem, status in ((FilterProblem.NOT_INSTALLED, 0), (FilterProblem.TIMEOUT, 3)):
        report = score(content_filter=ScriptedFilter(unavailable(problem)))
        assert judge_report(as_json(render_report(report)), 8.0) == status


def test_what_is_printed() -> None:
    """The output has the score, deductions, the record to publish, and broken receiver rules."""
    report = score(zone_with(without=["_dmarc.sender.example"]))
    text = "\n".join(plain(describe_report(as_json(render_report(report)))))
    assert text.startswith("9.0/10  ann@sender.example  The minutes of Monday\n")
    assert "fail    -1.0 DMARC" in text
    assert "_dmarc.sender.example  TXT  v=DMARC1" in text
    assert "misses  rules of Google, 5,000 or more mails a day\n          not met: The From" in text
    assert "meets   rules of Google, every sender\n" in text


def test_rules_that_could_not_be_judged_are_not_met() -> None:
    """Without DNS answers, receiver rules are neither met nor broken."""
    names = ["sender.example", "_dmarc.sender.example", RSA.key_name]
    report = score(zone_with(failing=dict.fromkeys(names, DnsStatus.TIMEOUT)))
    lines = plain(describe_report(as_json(render_report(report))))
    rules = [line for line in lines if " rules of " in line]
    assert len(rules) == 4
    assert all(line.startswith("  unknown rules of ") for line in rules)
    assert "  (2 of 6 rules could not be judged)" in rules[0]


LISTS_EVERYTHING = "psbl.surriel.com"


@pytest.fixture(scope="module")
def resolver() -> Iterator[str]:
    """Run a name server that has the perfect sender, and blocklists that pass their self-test.

    One of them, ``LISTS_EVERYTHING``, lists every address.
    """
    zone = zone_with()
    publish_list_test_entries(zone)
    # The test entry stands below 127, so that the first wildcard does not cover what is there.
    for covered in (f"*.{LISTS_EVERYTHING}", f"*.127.{LISTS_EVERYTHING}"):
        zone.publish(covered, "A", "127.0.0.2")
    with running_name_server(zone) as server:
        yield f"{server.host}:{server.port}"


def environment(resolver: str) -> dict[str, str]:
    """Return the options of a command that queries the name server only."""
    return {
        "MAILCHECK_DNS_RESOLVERS": f'["{resolver}"]',
        # A list that is not tested in time would be trusted, also on a busy machine.
        "MAILCHECK_BLOCKLISTS_DEADLINE": "10",
        "MAILCHECK_SPAMASSASSIN_SPAMD": "off",
    }


async def scored(resolver: str, folder: Path, *arguments: str, mail: bytes) -> Outcome:
    """Run the command line on a mail in a file."""
    path = folder / "scored.eml"
    path.write_bytes(mail)
    return await run_work(environment(resolver), "score", str(path), *arguments)


@pytest_twisted.ensureDeferred
async def test_a_list_that_lists_every_address_is_unknown(resolver: str, tmp_path: Path) -> None:
    """A list that fails its self-test is unknown without a daemon, too, for both commands."""
    done = await scored(resolver, tmp_path, *ENVELOPE, "--json", mail=RSA.sign(MAIL))
    blacklist = json.loads(done.output)["checks"]["blacklist"]
    assert blacklist["listed"] == 0
    assert blacklist["unknown"] == 1
    options = environment(resolver)
    checked = await run_work(options, "blacklist", ADDRESS, "--json")
    statuses = {row["zone"]: row["status"] for row in json.loads(checked.output)["results"]}
    assert statuses.pop(LISTS_EVERYTHING) == "unknown"
    assert "listed" not in statuses.values()


ENVELOPE = ("--ip", ADDRESS, "--helo", HELO, "--mail-from", SENDER)


@pytest_twisted.ensureDeferred
async def test_a_perfect_mail_on_the_command_line(
    resolver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A perfect mail on standard input gets 10.0 and status 0."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(RSA.sign(MAIL))))
    done = await run_work(environment(resolver), "score", "-", *ENVELOPE, "--json")
    assert done.status == 0, done.errors
    found = json.loads(done.output)
    assert found["score"] == 10.0
    assert found["assumed"] == {}


HTML = (
    b"From: shop@sender.example\r\nSubject: Hello\r\nMIME-Version: 1.0\r\n"
    b"Content-Type: text/html; charset=utf-8\r\n\r\n"
    b'<p style="border-radius:4px">Hello \x1b[2J <img src="https://sender.example/a.png"></p>\r\n'
)


@pytest_twisted.ensureDeferred
async def test_the_checks_of_the_html_on_the_command_line(resolver: str, tmp_path: Path) -> None:
    """With --html, compatibility problems and barriers are shown; the score stays the same."""
    plain, html, told = [
        await scored(resolver, tmp_path, *ENVELOPE, *more, mail=HTML)
        for more in (("--json",), ("--json", "--html"), ("--html",))
    ]
    without, found = json.loads(plain.output), json.loads(html.output)
    checks = found.pop("html")
    assert found["score"] == without["score"]
    assert "html" not in without
    assert checks["compatibility"]["findings"][0]["feature"] == "css-border-radius"
    barriers = {one["id"] for one in checks["accessibility"]["findings"]}
    assert "accessibility.image-without-alt" in barriers
    assert "  border-radius  line 1" in told.lines


def test_the_checks_of_the_html_are_written_for_people() -> None:
    """Titles with lines and programs come first, then barriers with their fix."""
    checks = as_json(render_html_checks(check_raw_mail(HTML)))
    lines = plain(describe_checks(checks))
    assert "  border-radius  line 1" in lines
    assert any("not in:" in line and "Outlook (Windows)" in line for line in lines)
    assert any("fix: Add an alt text to every image" in line for line in lines)
    text = as_json(render_html_checks(check_raw_mail(b"Subject: x\r\n\r\nHello\r\n")))
    assert "no HTML" in plain(describe_checks(text))[1]


@pytest_twisted.ensureDeferred
async def test_unsubscribing_on_the_command_line(resolver: str, tmp_path: Path) -> None:
    """With --press-unsubscribe, the request is sent, but never to a private address."""
    offer = (
        b"List-Unsubscribe: <https://127.0.0.1/x>\r\n"
        b"List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"
    )
    press = "--press-unsubscribe"
    for mail, problem in ((offer + HTML, "not-public"), (HTML, "not-offered")):
        done = await scored(resolver, tmp_path, *ENVELOPE, press, "--json", mail=mail)
        found = json.loads(done.output)["pressedUnsubscribe"]
        assert (found["verdict"], found["problem"]) == ("not-sent", problem)


def test_an_unsubscribe_request_is_told() -> None:
    """The verdict, the address, the redirect and the advice are printed."""
    answer = PressAnswer("https://a.example/", 301, "https://b.example/")
    lines = plain(describe_pressed(as_json(render_pressed(judge_press(answer)))))
    assert "refused (301)" in lines[2]
    assert lines[3:5] == ["       https://a.example/", "       redirect to https://b.example/"]
    assert "fix: Unsubscribe at this address itself" in lines[5]


@pytest_twisted.ensureDeferred
async def test_assumptions_on_the_command_line(resolver: str, tmp_path: Path) -> None:
    """Values read from the file are shown before the report, and missing ones are requested."""
    mail = POSTFIX + RSA.sign(MAIL)
    done = await scored(resolver, tmp_path, "--from-headers", mail=mail)
    assert "not verified: ip 192.0.2.7, helo mx.shop.example" in done.errors
    asked = await scored(resolver, tmp_path, mail=MAIL)
    assert (asked.status, asked.output) == (2, "")
    assert asked.errors.startswith("mailcheck: --ip is missing")


def report_with(**actions: tuple[str, bool]) -> Any:
    """Return a report with replies: an action, and whether it is determined."""
    replies = [
        {"receiver": name, "action": action, "determined": is_known}
        for name, (action, is_known) in actions.items()
    ]
    return {"score": 3.0, "report": {"replies": replies}}


@rows(
    ({"gmail": ("reject", True)}, ("--as", "gmail"), 1),
    ({"gmail": ("accept", True), "yahoo": ("reject", True)}, ("--as", "gmail"), 0),
    ({"gmail": ("accept", True)}, ("--as", "gmail", "--fail-under", "8"), 1),
    ({"gmail": ("defer", True)}, ("--as", "gmail"), 0),
    ({"gmail": ("defer", True)}, ("--as", "gmail", "--fail-on", "defer"), 1),
    ({"gmail": ("spam", True)}, ("--as", "gmail", "--fail-on", "defer"), 0),
    ({"gmail": ("spam", True)}, ("--as", "gmail", "--fail-on", "spam"), 1),
    ({"gmail": ("defer", False)}, ("--as", "gmail", "--fail-on", "defer"), 3),
    ({"gmail": ("unknown", False)}, ("--as", "gmail", "--fail-on", "spam"), 3),
    ({}, ("--as", "gmail"), 3),
)
def test_the_status_follows_the_reply_of_a_receiver(
    found: dict[str, tuple[str, bool]], arguments: tuple[str, ...], status: int
) -> None:
    """With --as, the receiver's action decides, and a missing answer is never a refusal."""
    parser = argparse.ArgumentParser()
    add_report_options(parser)
    given = parser.parse_args(arguments)
    report = report_with(**found)
    assert judge_report(report, given.fail_under, given.receivers, given.fail_on) == status


@pytest_twisted.ensureDeferred
async def test_the_reply_of_gmail_on_the_command_line(resolver: str, tmp_path: Path) -> None:
    """With a proposed record a mail is refused as Gmail publishes it, and the status says so."""
    record = ("--record", "sender.example TXT v=spf1 -all", "--as", "gmail")
    done = await scored(resolver, tmp_path, *ENVELOPE, *record, mail=MAIL)
    assert done.status == 1, done.errors
    assert "with 1 proposed record(s)" in done.output
    assert re.search(r"reject +gmail +550 5\.7\.26 Unauthenticated email", done.output)
    good = await scored(resolver, tmp_path, *ENVELOPE, "--as", "gmail", mail=RSA.sign(MAIL))
    assert good.status == 0, good.errors
