"""Texts of reports: correct, without repetition, and with advice that works."""

import re
from dataclasses import replace
from typing import Any

from mailcheck.checks.deliverability.content_filter import FilterRule, FilterVerdict
from mailcheck.checks.deliverability.score import CheckSummary, DeliverabilityReport
from mailcheck.checks.dns_answers import DnsStatus
from mailcheck.checks.findings import Area, CheckStatus, Finding
from tests.fakes.mail_signer import ED25519, RSA, RSA_768, RSA_1024
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.scripted_filter import ScriptedFilter
from tests.operations.scored_mails import (
    ADDRESS,
    HELO,
    MAIL,
    PERFECT,
    Records,
    faults,
    received,
    score,
    zone_with,
)
from tests.table import rows

DMARC = "_dmarc.sender.example"
OTHER = replace(RSA, domain="provider.example")
OTHER_KEY: Records = {OTHER.key_name: {"TXT": [OTHER.key_record]}}
PROVIDER: Records = {**OTHER_KEY, "provider.example": {"TXT": [f"v=spf1 ip4:{ADDRESS} -all"]}}
BULK = b"List-Id: <news.sender.example>\r\nPrecedence: bulk\r\n" + MAIL
HTML = MAIL.replace(b"text/plain", b"text/html").replace(
    b"Hello Bob", b'<a href="/x">Hi</a><img src="http://i.example/a.png">{{name}}'
)
CRON = (
    MAIL.replace(b"Ann Example <ann@sender.example>", b"root (Cron Daemon)")
    .replace(b"1.minutes@sender.example", b"1@web1.localdomain")
    .replace(b"MIME-Version: 1.0\r\n", b"")
)


def spf(*texts: str) -> Records:
    """Return other SPF records."""
    return {"sender.example": {**PERFECT["sender.example"], "TXT": list(texts)}}


def finding(report: DeliverabilityReport, finding_id: str) -> Finding:
    """Return the only finding with this id."""
    (found,) = [one.finding for one in report.score.charged if one.finding.id == finding_id]
    return found


def check(report: DeliverabilityReport, area: Area) -> CheckSummary:
    """Return one of the five checks."""
    return next(one for one in report.score.checks if one.area is area)


REPORTS: dict[str, Any] = {
    "perfect": lambda: score(),
    "nothing": lambda: score(
        zone_with({"sender.example": {}}, without=[DMARC, "10.4.8.8.in-addr.arpa"]),
        received(MAIL),
    ),
    "forwarded": lambda: score(mail=received(client_ip="9.9.9.10", helo_name="mx.else.example")),
    "list": lambda: score(
        zone_with(OTHER_KEY),
        received(OTHER.sign(RSA.sign(MAIL).replace(b"The minutes", b"[x] The minutes"))),
    ),
    "three signatures": lambda: score(mail=received(ED25519.sign(OTHER.sign(RSA.sign(MAIL))))),
    "short keys": lambda: score(mail=received(RSA_768.sign(RSA_1024.sign(MAIL)))),
    "provider": lambda: score(
        zone_with({**PROVIDER, DMARC: {"TXT": ["v=DMARC1; p=none"]}}),
        received(OTHER.sign(MAIL), envelope_sender="b@provider.example"),
    ),
    "bulk": lambda: score(mail=received(RSA.sign(BULK))),
    "html": lambda: score(mail=received(RSA.sign(HTML))),
    "cron": lambda: score(
        mail=received(CRON, envelope_sender="root@web1.localdomain", helo_name="web1.localdomain")
    ),
    "laptop": lambda: score(
        mail=received(MAIL, client_ip="127.0.0.1", envelope_sender="me@laptop", tls=None),
        offers_tls=False,
    ),
    "listed": lambda: score(
        zone_with({"10.4.8.8.zen.spamhaus.org": {"A": ["127.0.0.2"]}}), received(MAIL)
    ),
    "silence": lambda: score(
        zone_with(failing=dict.fromkeys(["sender.example", DMARC, HELO], DnsStatus.TIMEOUT))
    ),
    "no author": lambda: score(mail=received(MAIL.replace(b"From:", b"X-From:"))),
    "two authors": lambda: score(mail=received(b"From: eve@evil.example\r\n" + RSA.sign(MAIL))),
    "filtered": lambda: score(
        content_filter=ScriptedFilter(
            FilterVerdict(6.0, 5.0, True, (FilterRule("SPF_FAIL", 6.0, "SPF", "ours"),))
        )
    ),
}


@rows(*list(REPORTS))
def test_the_texts_of_a_report_are_consistent(name: str) -> None:
    """No finding appears twice, sentences are complete, and each status fits its deduction."""
    report = REPORTS[name]()
    said = [(one.area, one.finding.id, one.finding.meaning) for one in report.score.charged]
    assert len(set(said)) == len(said)
    charged = [one.finding.id for one in report.score.deductions if one.area is not Area.BLACKLIST]
    assert len(set(charged)) == len(charged)
    for one in report.score.charged:
        for text in (one.finding.meaning, one.finding.fix):
            assert re.fullmatch(r"[\"A-Z0-9a-z].*(\.|https?://\S+)", text, re.DOTALL), text
            assert ".." not in text.replace("...", "")
            assert not re.search(r"[:;] (The|A|It|No) ", text), text
    costs = [one.tenths for one in report.score.deductions]
    assert costs == sorted(costs, reverse=True)
    for summary in report.score.checks:
        if summary.status is CheckStatus.PASS:
            assert summary.result == "pass"
            assert summary.tenths == 0
        elif summary.tenths:
            assert summary.reason
            assert summary.fix
        else:
            assert not summary.is_determined


@rows("laptop", "box.local", "web1.localdomain", "pc.lan")
def test_nothing_is_proposed_for_names_of_a_private_network(name: str) -> None:
    """No records are proposed for names of private networks."""
    raw = MAIL.replace(b"ann@sender.example", f"ann@{name}".encode())
    report = score(
        zone_with(without=["10.4.8.8.in-addr.arpa"]),
        received(raw, envelope_sender=f"ann@{name}", helo_name=name),
    )
    ids = {one.finding.id for one in report.score.deductions}
    author = "dmarc.no-record" if "." in name else "dmarc.no-author"
    assert {"spf.result-none", "helo.unresolvable", "rdns.absent", author} <= ids
    assert [one.finding.proposed for one in report.score.charged if one.finding.proposed] == []


@rows("[8.8.4.10]", "localhost", "\x1b[2J.example", "")
def test_an_invalid_helo_name_is_not_proposed(helo_name: str) -> None:
    """The HELO name is proposed for reverse DNS only if it is a valid host name."""
    zone = zone_with(without=["10.4.8.8.in-addr.arpa"])
    assert finding(score(zone, received(helo_name=helo_name)), "rdns.absent").proposed is None
    assert finding(score(zone), "rdns.absent").proposed is not None


def test_the_signature_to_fix_is_the_authors() -> None:
    """If no signature is valid, the report is about the author's own, in any position."""
    raw = OTHER.sign(RSA.sign(MAIL)) + b"footer\r\n"
    report = score(mail=received(raw))
    fault = finding(report, "dkim.invalid")
    assert fault.meaning.startswith("None of the 2 signatures is valid. The body was changed")
    assert "sender.example signed another body" in fault.meaning
    assert "sender.example signed another body" in check(report, Area.DKIM).detail
    assert "provider.example" in finding(report, "dkim.no-key").meaning
    assert "dkim.body-changed" not in [one.finding.id for one in report.score.charged]


def test_only_signatures_that_count_are_named_as_the_authors() -> None:
    """A provider's signature beside that of the author is not attributed to the author."""
    report = score(zone_with(OTHER_KEY), received(OTHER.sign(RSA.sign(MAIL))))
    detail = check(report, Area.DMARC).detail
    assert "the mail has a valid signature of sender.example, the domain in From." in detail
    assert "provider.example" not in detail


def test_a_mail_that_fails_brings_no_advice_for_a_stricter_policy() -> None:
    """While own mail fails DMARC, no stricter policy is advised."""
    report = REPORTS["provider"]()
    ids = [one.finding.id for one in report.score.charged]
    assert "dmarc.fails-none" in ids
    assert "dmarc.no-reports" in ids
    assert "dmarc.policy-none" not in ids
    passing = score(zone_with({DMARC: {"TXT": ["v=DMARC1; p=none"]}}))
    assert finding(passing, "dmarc.policy-none")


@rows("me@laptop", "me@other.example", "ann@sender.example", "")
def test_dmarc_of_an_unsigned_mail_from_a_laptop_is_open(sender: str) -> None:
    """DMARC of mail from a private address is undetermined, for any envelope sender."""
    report = score(mail=received(MAIL, client_ip="127.0.0.1", envelope_sender=sender))
    assert faults(report) == [("dkim.unsigned", 10)]
    open_check = finding(report, "dmarc.undetermined")
    assert open_check.fix == "Send the test from the server that sends your real mail."
    assert check(report, Area.SPF).detail.startswith("The mail came from 127.0.0.1 (loopback)")
    assert "No list was queried about the address." in check(report, Area.BLACKLIST).detail
    assert "through the server that sends your real mail" in report.notes[1]


def test_the_advice_for_silent_dns() -> None:
    """If DNS failed, the advice for an undetermined DMARC result is to check again."""
    zone = zone_with(failing={DMARC: DnsStatus.SERVFAIL})
    assert finding(score(zone), "dmarc.undetermined").fix.startswith("Check the test again")


def test_the_spf_check_covers_reverse_dns() -> None:
    """If SPF passes but the address has no name, the check gives that reason."""
    summary = check(score(zone_with(without=["10.4.8.8.in-addr.arpa"])), Area.SPF)
    assert (summary.status, summary.result) == (CheckStatus.FAIL, "pass")
    assert summary.detail == (
        'SPF passes: "mx" in the SPF record of sender.example matches 8.8.4.10.'
        " The sending address has no reverse DNS name."
    )


def test_only_counted_points_fail_the_content() -> None:
    """Spam rules that repeat other checks do not make the content fail."""
    summary = check(REPORTS["filtered"](), Area.SPAMASSASSIN)
    assert (summary.status, summary.result, summary.tenths) == (CheckStatus.PASS, "pass", 0)
    assert summary.detail == "SpamAssassin: 6.0 points, of which 0.0 count here; spam from 5.0."


def test_rules_of_the_filter_are_described() -> None:
    """The fix contains the descriptions of the heaviest rules."""
    rules = (
        FilterRule("SUBJ_ALL_CAPS", 0.5, "Subject is all capitals"),
        FilterRule("HTML_IMAGE_ONLY_04", 1.2, "BODY: HTML: images with 0-400 bytes of words"),
        FilterRule("NAMELESS", 0.1, ""),
        FilterRule("FOURTH", 0.1, "Not said"),
    )
    report = score(content_filter=ScriptedFilter(FilterVerdict(1.9, 5.0, False, rules)))
    assert finding(report, "spamassassin.points").fix == (
        "Change the content that the rules match: images with 0-400 bytes of words; Subject is all"
        " capitals; NAMELESS."
    )


def test_private_names_are_not_looked_up() -> None:
    """No SPF record is looked up below a name of a private network."""
    zone: MemoryZone = zone_with()
    score(zone, received(envelope_sender="ann@box.local"))
    assert "spf.box.local" not in [question.name for question in zone.asked]
