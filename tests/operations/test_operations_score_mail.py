"""From a received mail to its score: all checks together, with a complete zone."""

from dataclasses import replace
from typing import Any

import pytest
from twisted.internet.defer import CancelledError, Deferred, fail, succeed
from twisted.internet.task import Clock

from mailcheck.api.deliverability.report import store_report
from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.deliverability.content_filter import (
    FilterOutcome,
    FilterProblem,
    FilterRule,
    FilterVerdict,
    unavailable,
)
from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion, DnsStatus
from mailcheck.checks.findings import Area, Severity
from mailcheck.checks.findings_table import FINDINGS
from mailcheck.checks.quality.topics import topic_of
from mailcheck.checks.weights import cost_of_listing
from mailcheck.core.deliverability_tests import ReceivedMail
from tests.fakes.mail_signer import RSA, RSA_768, RSA_1024
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.scripted_filter import ScriptedFilter
from tests.house import run
from tests.operations.scored_mails import (
    ADDRESS,
    HELO,
    MAIL,
    PERFECT,
    Records,
    faults,
    received,
    score,
    scorer,
    zone_with,
)
from tests.table import rows

DMARC = "_dmarc.sender.example"
OTHER = replace(RSA, domain="provider.example")
OTHER_KEY: Records = {OTHER.key_name: {"TXT": [OTHER.key_record]}}
DBL = "127.0.1.2"
HTML_ONLY = MAIL.replace(b"text/plain", b"text/html")


def listing(name: str, code: str = "127.0.0.2") -> Records:
    """Return the records of a listing for a name."""
    return {name: {"A": [code]}}


def test_a_perfect_sender() -> None:
    """A perfectly configured sender gets 10.0, with all checks determined."""
    report = score()
    assert faults(report) == []
    assert report.score.tenths == 100
    assert report.score.undetermined == ()
    assert report.notes == ()
    assert {check.result for check in report.score.checks} == {"pass"}
    assert all(checklist.is_met for checklist in report.checklists)


def spf(text: str) -> Records:
    """Return the records of another SPF policy."""
    return {"sender.example": {**PERFECT["sender.example"], "TXT": [text]}}


WITHOUT_SPF = {"MX": [f"10 {HELO}."]}


def mail(raw: bytes = MAIL, signer: Any = RSA, **changes: Any) -> ReceivedMail:
    """Return a received mail, signed or not."""
    return received(raw if signer is None else signer.sign(raw), **changes)


@rows(
        (zone_with(spf("v=spf1 ip4:8.8.4.99 ?all")), mail(), "spf.result-neutral"),
        (zone_with({"sender.example": WITHOUT_SPF}), mail(), "spf.result-none"),
        (zone_with(spf("v=spf1 ~all")), mail(), "spf.result-softfail"),
        (zone_with(spf("v=spf1 foo:bar -all")), mail(), "spf.result-permerror"),
        (zone_with(spf("v=spf1 -all")), mail(), "spf.result-fail"),
        (zone_with(without=["10.4.8.8.in-addr.arpa"]), mail(), "rdns.absent"),
        (
            zone_with({"10.4.8.8.in-addr.arpa": {"PTR": ["other.example."]}}),
            mail(),
            "rdns.unconfirmed",
        ),
        (zone_with(), mail(helo_name="gone.sender.example"), "helo.unresolvable"),
        (zone_with(), mail(helo_name="localhost"), "helo.unresolvable"),
        (zone_with(), mail(signer=RSA_1024), "dkim.weak-key"),
        (zone_with(OTHER_KEY), mail(signer=OTHER), "dkim.unaligned"),
        (zone_with(), mail(signer=None), "dkim.unsigned"),
        (zone_with(), mail(RSA.sign(MAIL) + b"footer\r\n", None), "dkim.invalid"),
        (zone_with(without=[RSA.key_name]), mail(), "dkim.invalid"),
        (
            zone_with({RSA_768.key_name: {"TXT": [RSA_768.key_record]}}),
            mail(signer=RSA_768),
            "dkim.invalid",
        ),
        (zone_with(without=[DMARC]), mail(), "dmarc.no-record"),
        (zone_with(), mail(MAIL.replace(b"Date: ", b"X-Date: ")), "headers.date-missing"),
        (zone_with(), mail(MAIL.replace(b"Message-ID", b"X-ID")), "headers.message-id-missing"),
        (zone_with(), mail(HTML_ONLY), "content.html-only"),
        (zone_with(), mail(tls=None), "transport.no-tls"),
        (zone_with(), mail(b"Precedence: bulk\r\n" + MAIL), "unsubscribe.no-one-click"),
    )  # fmt: skip
def test_each_single_fault(zone: MemoryZone, sent: ReceivedMail, fault: str) -> None:
    """Each single fault lowers the score by its published deduction and is reported."""
    report = score(zone, sent)
    tenths = FINDINGS[fault].price or 0
    assert faults(report) == [(fault, tenths)]
    assert report.score.tenths == 100 - tenths


@rows(
    zone_with(listing("10.4.8.8.zen.spamhaus.org")),
    zone_with(listing("10.4.8.8.bl.blocklist.de")),
    zone_with(listing("sender.example.dbl.spamhaus.org", DBL)),
)
def test_a_listing_costs_what_its_weight_says(zone: MemoryZone) -> None:
    """Each listing lowers the score by the deduction of its list and is reported."""
    report = score(zone, mail())
    (row,) = (one for one in report.evidence.listings if one.is_listed)
    assert faults(report) == [("dnsbl.listed", cost_of_listing(row.weight))]
    assert report.score.tenths == 100 - cost_of_listing(row.weight)


def test_the_content_filter() -> None:
    """Points of the filter are deducted, except for rules that repeat other checks."""
    rules = (FilterRule("SHOUTING", 2.5, "Shouts"), FilterRule("SPF_FAIL", 2.5, "SPF", "ours"))
    content_filter = ScriptedFilter(FilterVerdict(5.0, 5.0, True, rules))
    report = score(content_filter=content_filter)
    assert faults(report) == [("spamassassin.points", 20)]
    (shown,) = content_filter.judged
    assert shown.startswith(b"Return-Path: <ann@sender.example>\r\nReceived: from " + HELO.encode())
    assert HELO.encode() + b" [" + ADDRESS.encode() in shown
    assert shown.endswith(received().raw_message)


def test_the_same_mail_twice() -> None:
    """The same mail gets the same report, byte for byte."""
    assert store_report(score()) == store_report(score())


UNKNOWN: list[tuple[dict[str, Any], Area]] = [
    ({"failing": {("sender.example", "TXT"): DnsStatus.TIMEOUT}}, Area.SPF),
    ({"failing": {HELO: DnsStatus.SERVFAIL}}, Area.SPF),
    ({"failing": {"10.4.8.8.in-addr.arpa": DnsStatus.REFUSED}}, Area.SPF),
    ({"failing": {RSA.key_name: DnsStatus.TIMEOUT}}, Area.DKIM),
    ({"failing": {DMARC: DnsStatus.SERVFAIL}}, Area.DMARC),
]


@rows(*UNKNOWN)
def test_temporary_failures_cost_nothing(options: dict[str, Any], area: Area) -> None:
    """Lookups without an answer cost no points, and are named at the top."""
    report = score(zone_with(**options))
    assert report.score.tenths == 100
    assert area in [check.area for check in report.score.undetermined]
    assert topic_of(area.value).title in report.notes[0]


class _DeadResolver:
    def lookup(self, question: DnsQuestion) -> Any:
        return succeed(DnsAnswer(question, DnsStatus.TIMEOUT))


def test_all_of_dns_is_down() -> None:
    """Without DNS, only deductions for the mail itself are made."""
    report = run(scorer(_DeadResolver()).score(mail(HTML_ONLY)))
    assert faults(report) == [("content.html-only", 3)]
    assert [check.area.value for check in report.score.undetermined] == [
        "spf",
        "dkim",
        "dmarc",
        "blacklist",
    ]


RSPAMD_VERDICT = FilterVerdict(
    9.0, 6.0, True, (FilterRule("SHOUTS", 3.0, "Shouts"), FilterRule("R_SPF_FAIL", 6.0, "", "ours"))
)


@rows(FilterProblem.OFF, FilterProblem.NOT_INSTALLED)
def test_rspamd_counts_without_spamassassin(problem: FilterProblem) -> None:
    """If there is no SpamAssassin, rspamd's points cost as much of its threshold as those do."""
    rspamd = ScriptedFilter(RSPAMD_VERDICT)
    spamassassin = ScriptedFilter(unavailable(problem))
    report = score(content_filter=spamassassin, rspamd=rspamd)
    assert faults(report) == [("rspamd.points", 20)]
    assert report.evidence.is_rspamd_counted
    assert rspamd.judged == spamassassin.judged


@rows(FilterVerdict(0.0, 5.0, False, ()), unavailable(FilterProblem.TIMEOUT))
def test_rspamd_beside_spamassassin(outcome: FilterOutcome) -> None:
    """If there is a SpamAssassin, even one that fails, rspamd is shown and costs nothing."""
    report = score(content_filter=ScriptedFilter(outcome), rspamd=ScriptedFilter(RSPAMD_VERDICT))
    assert (report.score.tenths, faults(report)) == (100, [])
    (shown,) = [one for one in report.score.charged if one.finding.id == "rspamd.points"]
    assert "costs no points beside SpamAssassin" in shown.finding.meaning


@rows(*list(FilterProblem))
def test_an_rspamd_that_fails(problem: FilterProblem) -> None:
    """An rspamd without a verdict is undetermined and costs nothing."""
    report = score(
        content_filter=ScriptedFilter(unavailable(FilterProblem.OFF)),
        rspamd=ScriptedFilter(unavailable(problem, "rspamd")),
    )
    assert report.score.tenths == 100
    (found,) = [one.finding for one in report.score.charged if one.area is Area.RSPAMD]
    assert found.severity is Severity.UNDETERMINED


PRIVATE = ["10.0.0.5", "127.0.0.1", "192.168.1.1", "fd00::1", ""]


@rows(*PRIVATE)
def test_a_private_address(address: str) -> None:
    """From a private address, only content and DKIM are judged, and the report says so."""
    report = score(mail=received(client_ip=address, helo_name="laptop"))
    assert report.score.tenths == 100
    came_from = address or "nowhere"
    assert report.notes[0] == f"came from {came_from}: only content and DKIM could be judged"
    results = {check.area: check.result for check in report.score.checks}
    assert results[Area.SPF] == "temperror"
    assert results[Area.BLACKLIST] == "unknown"
    ids = [one.finding.id for one in report.score.charged]
    assert "blacklist.no-address" in ids
    assert (results[Area.DKIM], results[Area.DMARC]) == ("pass", "pass")


def test_a_private_address_without_a_signature() -> None:
    """DMARC is undetermined, since SPF might have passed. Other faults are deducted."""
    report = score(mail=mail(signer=None, client_ip="10.0.0.5"))
    assert faults(report) == [("dkim.unsigned", 10)]
    assert report.evidence.authentication.dmarc.result is AuthResult.TEMPERROR


def test_private_addresses_can_be_judged() -> None:
    """With ``allow_private``, a private address is judged like any other, for test networks."""
    zone = zone_with({**spf("v=spf1 ip4:10.0.0.5 -all")})
    report = score(zone, received(client_ip="10.0.0.5"), allow_private=True)
    assert report.evidence.authentication.spf.mail_from.result is AuthResult.PASS
    assert report.notes == ()


def test_addresses_for_documentation_are_judged() -> None:
    """Documentation addresses are judged too, since users try the service with them."""
    zone = zone_with({**spf("v=spf1 ip4:192.0.2.0/24 -all")})
    report = score(zone, received(client_ip="192.0.2.7"))
    assert report.evidence.authentication.spf.mail_from.result is AuthResult.PASS
    assert report.notes == ()


@rows(
    ((), True, True),
    ((), False, False),
    (("S: 250-mx", "S: 250-STARTTLS", "S: 250 SIZE"), False, True),
    (("S: 250-mx", "S: 250 starttls"), False, True),
    (("S: 250-mx", "S: 250 SIZE"), True, False),
)
def test_encryption_that_was_offered(
    transcript: tuple[str, ...], is_offered: bool, charged: bool
) -> None:
    """Missing encryption costs points only if the transcript shows that TLS was offered."""
    sent = received(tls=None, transcript=transcript)
    report = score(mail=sent, offers_tls=is_offered)
    assert faults(report) == ([("transport.no-tls", 3)] if charged else [])


def test_the_null_reverse_path() -> None:
    """A bounce is judged by its HELO name."""
    report = score(mail=received(envelope_sender=""))
    assert report.evidence.authentication.spf.mail_from.domain == HELO
    assert report.score.tenths == 100


@rows(
    b"",
    b"\r\n\r\n",
    b"no header at all",
    MAIL.replace(b"From: ", b"X-From: "),
    b"From: other@elsewhere.example\r\n" + MAIL,
    b"From: nobody\r\n\r\n",
    b"DKIM-Signature: " + b" \t" * 300_000 + b"\r\n" + MAIL,
    b"".join(b"DKIM-Signature: v=1; d=a%d.example; s=s\r\n" % n for n in range(50)) + MAIL,
    b"\xff\xfe\x00" * 100,
)
def test_any_bytes_are_scored(raw: bytes) -> None:
    """A mail of any bytes gets a score within bounds."""
    report = score(mail=received(raw))
    assert 0 <= report.score.tenths <= 100
    assert store_report(report).document.startswith("{")


@rows(b"", b"From: other@elsewhere.example\r\nFrom: ann@sender.example\r\n")
def test_no_single_author(author: bytes) -> None:
    """A mail without a From field, or with two, cannot pass DMARC, and the report says so."""
    raw = author + MAIL.partition(b"\r\n")[2]
    assert ("dmarc.no-author", 15) in faults(score(mail=mail(raw, None)))


def test_forged_results_are_ignored() -> None:
    """Authentication-Results in the mail are ignored. Those in the server's name are noted."""
    forged = b"Authentication-Results: mailcheck.example; spf=pass; dkim=pass; dmarc=pass\r\n"
    zone = zone_with(spf("v=spf1 -all"))
    plain = score(zone, mail(signer=None))
    report = score(zone, mail(forged + MAIL, None))
    assert report.score.tenths == plain.score.tenths
    assert "mailcheck.example, which this server did not add; it was ignored" in report.notes[0]


def test_which_names_are_looked_up_in_lists() -> None:
    """Lists are queried for the address, and for the domains of From, envelope and links."""
    raw = MAIL.replace(b"https://sender.example/minutes", b"https://click.tracker.co.uk/x")
    zone = zone_with()
    score(zone, mail(raw, envelope_sender="b@bounce.sender.example"))
    asked = {question.name for question in zone.asked}
    for name in ("sender.example", "bounce.sender.example", "tracker.co.uk"):
        assert f"{name}.dbl.spamhaus.org" in asked
    assert "10.4.8.8.zen.spamhaus.org" in asked
    assert "click.tracker.co.uk.dbl.spamhaus.org" not in asked


def test_many_links_are_bounded() -> None:
    """A mail with links to many domains causes lookups for at most ten of them."""
    links = b"".join(b"https://d%d.example/\r\n" % number for number in range(500))
    zone = zone_with()
    report = score(zone, mail(MAIL + links))
    asked = [q for q in zone.asked if q.name.endswith(".dbl.spamhaus.org")]
    assert len(asked) == 10
    assert report.score.tenths == 100


def test_questions_are_bounded() -> None:
    """The lookups that the content of a mail causes stay within the budget."""
    signatures = b"".join(
        b"DKIM-Signature: v=1; a=rsa-sha256; d=d%d.example; s=s; h=from; bh=AA==; b=AA==\r\n" % n
        for n in range(50)
    )
    includes = " ".join(f"include:i{n}.example" for n in range(200))
    zone = zone_with(spf(f"v=spf1 {includes} -all"))
    score(zone, mail(signatures + MAIL, None))
    lists = ("spamhaus.org",)
    assert len([q for q in zone.asked if not q.name.endswith(lists)]) < 500


class _Crash(Exception):
    pass


class _CrashingFilter:
    def judge(self, raw_message: bytes) -> Any:
        return fail(_Crash())


def test_a_crash_is_not_hidden() -> None:
    """An unexpected exception in one check fails the analysis, and cancels the other checks."""
    clock = Clock()
    zone = zone_with(silent=["sender.example"])
    with pytest.raises(_Crash):
        run(scorer(zone, content_filter=_CrashingFilter(), clock=clock).score(received()))
    assert zone.unanswered == []
    assert clock.getDelayedCalls() == []


def test_cancelling_ends_all_parts() -> None:
    """Cancelling an analysis leaves no lookup, no filter call and no timer behind."""
    clock = Clock()
    zone = zone_with(silent=["sender.example", RSA.key_name])
    content_filter = ScriptedFilter()
    content_filter.holds = True
    scoring = scorer(zone, content_filter=content_filter, clock=clock)
    done = Deferred.fromCoroutine(scoring.score(received()))
    assert zone.unanswered
    done.cancel()
    done.addErrback(lambda failure: failure.trap(CancelledError))
    assert zone.unanswered == []
    assert clock.getDelayedCalls() == []
    content_filter.answer()


def test_silence_ends_in_time() -> None:
    """Lookups that are never answered end after ten seconds, without a deduction."""
    clock = Clock()
    zone = zone_with(silent=["sender.example", DMARC, RSA.key_name])
    done = Deferred.fromCoroutine(scorer(zone, clock=clock).score(received()))
    clock.pump([0.05] * 220)
    report = run(_result(done))
    assert report.score.tenths == 100
    names = {check.area for check in report.score.undetermined}
    assert names == {Area.SPF, Area.DKIM, Area.DMARC}


def test_an_irrelevant_name_does_not_delay_the_score() -> None:
    """A name that would only matter if its SPF passed does not delay the score."""
    clock = Clock()
    zone = zone_with(silent=["_dmarc.bounce.sender.example"])
    sent = received(envelope_sender="bounce@bounce.sender.example")
    done = Deferred.fromCoroutine(scorer(zone, clock=clock).score(sent))
    clock.pump([0.05] * 3)
    assert run(_result(done)).score.undetermined == ()
    assert "_dmarc.bounce.sender.example" in [question.name for question in zone.asked]
    assert zone.unanswered == []


async def _result(done: Any) -> Any:
    return await done
