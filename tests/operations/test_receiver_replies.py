"""The replies of receivers: each rule with a good mail and a bad mail.

The mails pass through all checks with a zone as DNS, as a deliverability test does.
"""

from collections.abc import Callable
from datetime import date
from functools import cache
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from mailcheck.api.deliverability.report import store_report
from mailcheck.checks.deliverability.score import DeliverabilityReport
from mailcheck.checks.dns_answers import DnsStatus
from mailcheck.checks.quality.receiver_replies import (
    BULK,
    OK,
    Action,
    JudgedRule,
    SimulatedReply,
    Stage,
    find_profile,
    load_profiles,
    simulate_replies,
)
from mailcheck.checks.quality.receivers import (
    QUESTIONS,
    Evidence,
    RuleResult,
    load_receivers,
)
from tests.fakes.mail_signer import RSA
from tests.operations.scored_mails import (
    ADDRESS,
    MAIL,
    PERFECT,
    Records,
    received,
    score,
    zone_with,
)
from tests.table import rows

NEWS = MAIL.replace(
    b"MIME-Version",
    b"Precedence: bulk\r\n"
    b"List-Unsubscribe: <https://sender.example/u/1>\r\n"
    b"List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"
    b"MIME-Version",
) + (b"Unsubscribe: https://sender.example/u/1\r\n")
SIGNED = (
    "from",
    "to",
    "subject",
    "date",
    "message-id",
    "list-unsubscribe",
    "list-unsubscribe-post",
)
PTR = "10.4.8.8.in-addr.arpa"
DMARC = "_dmarc.sender.example"
RULES = {rule.id: rule for profile in load_profiles() for rule in profile.rules}


def sign(raw: bytes) -> bytes:
    """Return a mail with a signature of all fields that it needs."""
    return RSA.sign(raw, fields=SIGNED)


def sent(
    raw: bytes = NEWS, records: Records | None = None, *, signed: bool = True, **more: Any
) -> DeliverabilityReport:
    """Score a mail. ``more`` are options of the zone or of the mail."""
    zone = zone_with(
        records, **{key: more.pop(key) for key in ("without", "failing") if key in more}
    )
    return score(zone, received(sign(raw) if signed else raw, **more))


def changed(old: bytes, new: bytes) -> Callable[[], DeliverabilityReport]:
    """Return a function that scores a mail with other text."""
    assert old in NEWS
    return lambda: sent(NEWS.replace(old, new))


def with_spf(text: str, **more: Any) -> Records:
    """Return the records of a sender with another SPF policy."""
    return {"sender.example": {**PERFECT["sender.example"], "TXT": [text]}, **more}


def unauthenticated(policy: str) -> DeliverabilityReport:
    """Score a mail that fails DMARC."""
    dmarc = {DMARC: {"TXT": [f"v=DMARC1; p={policy}"]}}
    return sent(records=with_spf("v=spf1 -all", **dmarc), signed=False)


def unaligned(policy: str) -> DeliverabilityReport:
    """Score a mail whose From domain is aligned with neither SPF nor DKIM."""
    records: Records = {
        "other.example": {"A": [ADDRESS]},
        "_dmarc.other.example": {"TXT": [f"v=DMARC1; p={policy}"]},
    }
    return sent(NEWS.replace(FROM, b"From: ann@other.example\r\n"), records)


def listed(code: str) -> Callable[[], DeliverabilityReport]:
    """Return a function that scores a mail from a listed address."""
    return lambda: sent(records={"10.4.8.8.zen.spamhaus.org": {"A": [code]}})


FROM = b"From: Ann Example <ann@sender.example>\r\n"
NULL_MX: Records = {"sender.example": {"TXT": ["v=spf1 ip4:8.8.4.10 -all"], "MX": ["0 ."]}}

MAILS: dict[str, Callable[[], DeliverabilityReport]] = {
    "good": sent,
    "no reverse dns": lambda: sent(without=[PTR]),
    "two from fields": changed(FROM, FROM + FROM),
    "no from": changed(FROM, b"X-From: nobody\r\n"),
    "two authors": changed(FROM, b"From: ann@sender.example, bob@sender.example\r\n"),
    "two subjects": changed(b"Subject:", b"Subject: twice\r\nSubject:"),
    "no message-id": changed(b"Message-ID:", b"X-ID:"),
    "no date": changed(b"Date:", b"X-Date:"),
    "long line": changed(b"Hello Bob", b"Hello " + b"Bob" * 400),
    "raw header": changed(b"The minutes", "Das Protokoll f\u00fcr".encode()),
    "fails reject": lambda: unauthenticated("reject"),
    "fails quarantine": lambda: unauthenticated("quarantine"),
    "no authentication": lambda: unauthenticated("none"),
    "forged gmail": changed(FROM, b"From: ann@gmail.com\r\n"),
    "no tls": lambda: sent(tls=None),
    "no spf": lambda: sent(records=with_spf("v=spf1 ?all")),
    "spf fails": lambda: sent(records=with_spf("v=spf1 ip4:8.8.4.99 -all")),
    "spf is wrong": lambda: sent(records=with_spf("v=spf1 foo:bar -all")),
    "spf allows none": lambda: sent(records=with_spf("v=spf1 -all")),
    "unsigned": lambda: sent(signed=False),
    "no dmarc": lambda: sent(without=[DMARC]),
    "unaligned": lambda: unaligned("none"),
    "unaligned and rejected": lambda: unaligned("reject"),
    "no one-click": changed(b"List-Unsubscribe-Post:", b"X-Post:"),
    "no link": changed(b"Unsubscribe: https", b"Read: https"),
    "no unsubscribe": lambda: sent(
        NEWS.replace(b"List-Unsubscribe", b"X-List").replace(b"Unsubscribe: ", b"Read: ")
    ),
    "listed for abuse": listed("127.0.0.2"),
    "listed as dynamic": listed("127.0.0.10"),
    "no such sender": lambda: sent(envelope_sender="ann@gone.example"),
    "no such author": changed(FROM, b"From: ann@gone.example\r\n"),
    "null mx": lambda: sent(records=NULL_MX),
}
"""A mail that meets all rules, and mails that each break some."""

BROKEN = {
    "gmail.reverse-dns": ("no reverse dns", "550 5.7.25"),
    "gmail.several-from": ("two from fields", "550 5.7.1"),
    "gmail.no-author": ("no from", "550 5.7.1"),
    "gmail.several-authors": ("two authors", "550 5.7.1"),
    "gmail.repeated-fields": ("two subjects", "550 5.7.1"),
    "gmail.message-id": ("no message-id", "550 5.7.1"),
    "gmail.dmarc-reject": ("fails reject", "550 5.7.26"),
    "gmail.authentication": ("no authentication", "550 5.7.26"),
    "gmail.dmarc-quarantine": ("fails quarantine", "spam"),
    "gmail.impersonation": ("forged gmail", "spam"),
    "gmail.tls": ("no tls", "unknown"),
    "gmail.format": ("no date", "unknown"),
    "gmail.reputation": ("good", "unknown"),
    "gmail.bulk-tls": ("no tls", "550 5.7.29"),
    "gmail.bulk-spf": ("no spf", "550 5.7.27"),
    "gmail.bulk-dkim": ("unsigned", "550 5.7.30"),
    "gmail.bulk-dmarc": ("no dmarc", "550 5.7.40"),
    "gmail.bulk-aligned": ("unaligned", "421 4.7.32"),
    "gmail.bulk-one-click": ("no one-click", "accept"),
    "gmail.bulk-link": ("no link", "accept"),
    "yahoo.spamhaus": ("listed as dynamic", "553 5.7.1"),
    "yahoo.sender-domain": ("no such sender", "554"),
    "yahoo.null-mx": ("null mx", "554"),
    "yahoo.author-domain": ("no such author", "554"),
    "yahoo.dmarc-reject": ("fails reject", "554 5.7.9"),
    "yahoo.authentication": ("no authentication", "554 5.7.9"),
    "yahoo.dmarc-quarantine": ("fails quarantine", "spam"),
    "yahoo.reverse-dns": ("no reverse dns", "unknown"),
    "yahoo.format": ("two subjects", "unknown"),
    "yahoo.reputation": ("good", "unknown"),
    "yahoo.bulk-spf": ("no spf", "554 5.7.9"),
    "yahoo.bulk-dkim": ("unsigned", "554 5.7.9"),
    "yahoo.bulk-aligned": ("unaligned", "554 5.7.9"),
    "yahoo.bulk-dmarc": ("no dmarc", "unknown"),
    "yahoo.bulk-one-click": ("no one-click", "unknown"),
    "yahoo.bulk-link": ("no link", "unknown"),
    "outlook.spamhaus": ("listed for abuse", "550"),
    "outlook.dynamic": ("listed as dynamic", "550"),
    "outlook.no-senders": ("spf allows none", "550"),
    "outlook.dmarc-reject": ("fails reject", "550 5.7.509"),
    "outlook.dmarc-quarantine": ("fails quarantine", "spam"),
    "outlook.reverse-dns": ("no reverse dns", "unknown"),
    "outlook.reputation": ("good", "unknown"),
    "outlook.bulk-spf": ("no spf", "550 5.7.515"),
    "outlook.bulk-dkim": ("unsigned", "550 5.7.515"),
    "outlook.bulk-dmarc": ("no dmarc", "550 5.7.515"),
    "outlook.bulk-aligned": ("unaligned", "550 5.7.515"),
    "outlook.bulk-own-from": ("forged gmail", "unknown"),
    "outlook.bulk-replies": ("null mx", "unknown"),
    "outlook.bulk-unsubscribe": ("no unsubscribe", "unknown"),
    "strict.null-mx": ("null mx", "550 5.7.27"),
    "strict.sender-domain": ("no such sender", "550 5.1.8"),
    "strict.spf": ("spf fails", "550 5.7.23"),
    "strict.spf-error": ("spf is wrong", "550 5.7.24"),
    "strict.several-from": ("two from fields", "554 5.6.0"),
    "strict.no-author": ("no from", "554 5.6.0"),
    "strict.several-authors": ("two authors", "554 5.6.0"),
    "strict.date": ("no date", "554 5.6.0"),
    "strict.repeated-fields": ("two subjects", "554 5.6.0"),
    "strict.long-lines": ("long line", "500 5.5.2"),
    "strict.raw-header": ("raw header", "554 5.6.9"),
    "strict.dkim": ("unsigned", "accept"),
    "strict.dmarc-reject": ("fails reject", "550 5.7.1"),
    "strict.dmarc-quarantine": ("fails quarantine", "spam"),
}
"""Rule -> a mail that breaks it, and the reply or the action that follows, written by hand."""


@cache
def report_of(name: str) -> DeliverabilityReport:
    """Return the report of one of the mails."""
    return MAILS[name]()


def profile_of(rule_id: str) -> str:
    """Return the id of the profile that has a rule, with the rules for bulk mail."""
    receiver = rule_id.partition(".")[0]
    return receiver if find_profile(f"{receiver}-bulk") is None else f"{receiver}-bulk"


def reply_of(report: DeliverabilityReport, profile_id: str) -> SimulatedReply:
    """Return the reply of a receiver in a report."""
    (found,) = (one for one in report.replies if one.profile.id == profile_id)
    return found


def judged(name: str, rule_id: str) -> JudgedRule | None:
    """Return a rule that a mail does not meet, or `None` if the mail meets it."""
    rules = reply_of(report_of(name), profile_of(rule_id)).rules
    return next((one for one in rules if one.rule.id == rule_id), None)


@rows(*RULES)
def test_each_rule_is_met_by_a_good_mail(rule_id: str) -> None:
    """A good mail meets each rule that one mail can show."""
    found = judged("good", rule_id)
    assert (found is not None) is RULES[rule_id].is_about_reputation


@rows(*RULES)
def test_each_rule_is_broken_by_a_bad_mail(rule_id: str) -> None:
    """Each rule has a mail that breaks it, and gives the published reply."""
    name, expected = BROKEN[rule_id]
    found = judged(name, rule_id)
    assert found is not None
    is_shown = not found.rule.is_about_reputation
    assert (found.result is RuleResult.NOT_MET) is is_shown
    words = found.action.value if found.reply is None else f"{found.reply} "
    assert words.startswith(expected if found.reply is None else f"{expected} ")


def test_a_good_mail_is_accepted_everywhere() -> None:
    """All receivers accept it, and only reputation stays open."""
    for found in report_of("good").replies:
        assert (found.action, found.reply, found.deciding) == (Action.ACCEPT, OK, None)
        assert found.stage is Stage.DATA
        assert found.is_determined
        assert all(one.rule.is_about_reputation for one in found.rules)


@rows(*MAILS)
def test_the_replies_agree_with_the_requirements(name: str) -> None:
    """A rule that both tables have gets the same result from both."""
    report = report_of(name)
    required = {one.id: one.result for table in report.checklists for one in table.rules}
    for found in report.replies:
        for one in found.rules:
            assert one.requirement == "" or required[one.requirement] is one.result


def test_every_requirement_has_its_reply() -> None:
    """Each requirement has a reply to mail that does not meet it.

    A signature with a short key does not pass, so it needs no rule of its own.
    """
    covered = {
        (profile.requirements, rule.question)
        for profile in load_profiles()
        for rule in profile.rules
    }
    missing = {
        rule.id
        for receiver in load_receivers()
        for rule in receiver.rules
        if (receiver.id, rule.question) not in covered
    }
    assert missing == {"google.key-size"}


def test_the_table_is_complete() -> None:
    """Rules have distinct ids, fitting replies, dated sources, and known questions."""
    profiles = [one for one in load_profiles() if not one.id.endswith(BULK)]
    all_rules = [rule for one in profiles for rule in one.rules]
    assert len({rule.id for rule in all_rules}) == len(all_rules)
    for rule in RULES.values():
        digit = {Action.REJECT: 5, Action.DEFER: 4}.get(rule.action)
        assert (rule.reply.code // 100 if rule.reply else None) == digit, rule.id
        assert rule.later is None or rule.later.code // 100 == 4
        assert rule.question in QUESTIONS
        assert rule.source.url.startswith("https://")
        assert date(2008, 1, 1) < rule.source.date < date(2027, 1, 1)
        assert rule.note.endswith(".")
    asked = {rule.question for one in load_receivers() for rule in one.rules}
    assert asked | {rule.question for rule in RULES.values()} == QUESTIONS.keys()


def test_bulk_rules_are_for_bulk_mail_only() -> None:
    """A mail with SPF alone is accepted from every sender and refused from a bulk sender."""
    report = report_of("unsigned")
    assert reply_of(report, "gmail").action is Action.ACCEPT
    assert reply_of(report, "gmail-bulk").action is Action.REJECT
    assert str(reply_of(report, "gmail-bulk").reply).startswith("550 5.7.30")
    assert reply_of(report, "outlook").action is Action.ACCEPT


def test_the_policy_of_the_domain_decides() -> None:
    """Mail that fails DMARC is refused for its policy only if the policy is reject."""
    deciding = {
        policy: reply_of(report_of(name), "strict").deciding
        for policy, name in (("none", "unaligned"), ("reject", "unaligned and rejected"))
    }
    assert deciding["none"] is None
    assert deciding["reject"] is not None
    assert deciding["reject"].rule.id == "strict.dmarc-reject"
    assert judged("no authentication", "gmail.dmarc-reject") is None
    assert judged("fails reject", "gmail.dmarc-quarantine") is None


def test_a_silent_blocklist_leaves_its_rules_open() -> None:
    """A rule about a list that gives no answer is shown, and does not change the reply."""
    name = "10.4.8.8.zen.spamhaus.org"
    report = sent(failing={(name, "A"): DnsStatus.SERVFAIL})
    for receiver, rule_id in (("yahoo", "yahoo.spamhaus"), ("outlook", "outlook.spamhaus")):
        found = reply_of(report, receiver)
        assert found.action is Action.ACCEPT
        (shown,) = (one for one in found.rules if one.rule.id == rule_id)
        assert (shown.result, shown.is_open) == (RuleResult.UNDETERMINED, True)


def test_a_sender_without_an_answer_is_deferred_by_yahoo() -> None:
    """Yahoo defers mail from a domain whose name server fails, and refuses an absent one."""
    report = sent(
        envelope_sender="ann@gone.example", failing={("gone.example", "MX"): DnsStatus.SERVFAIL}
    )
    found = reply_of(report, "yahoo")
    assert str(found.reply).startswith("451 Message temporarily deferred due to unresolvable")
    assert found.stage is Stage.MAIL
    bounce = reply_of(sent(envelope_sender=""), "yahoo")
    assert bounce.action is Action.ACCEPT


def test_a_silent_name_server_defers() -> None:
    """Receivers defer mail whose sender cannot be checked; they do not refuse it."""
    report = sent(
        failing={(name, "TXT"): DnsStatus.SERVFAIL for name in ("sender.example", RSA.key_name)}
    )
    for found in report.replies:
        assert found.action is Action.DEFER, found.profile.id
        assert found.reply is not None
        assert found.reply.code // 100 == 4
        assert not found.is_determined
        assert "DNS" in found.explanation
    assert str(reply_of(report, "gmail").reply).startswith("451 4.7.26")
    assert str(reply_of(report, "outlook").reply).startswith("451 4.4.3")


def test_a_private_client_leaves_the_reply_open() -> None:
    """Nothing is said about an address that no receiver sees, but the content is judged."""
    open_reply = reply_of(sent(signed=False, client_ip="10.0.0.7"), "gmail")
    assert (open_reply.action, open_reply.reply) == (Action.UNKNOWN, None)
    assert "10.0.0.7" in open_reply.explanation
    refused = reply_of(sent(NEWS.replace(FROM, FROM + FROM), client_ip="10.0.0.7"), "gmail")
    assert refused.action is Action.REJECT


def test_the_earliest_reply_decides() -> None:
    """A receiver that refuses the connection never reads the mail."""
    report = sent(
        NEWS.replace(FROM, FROM + FROM), {"10.4.8.8.zen.spamhaus.org": {"A": ["127.0.0.2"]}}
    )
    found = reply_of(report, "yahoo")
    assert found.stage is Stage.CONNECT
    assert str(found.reply).startswith(
        f"553 5.7.1 [BL21] Connections will not be accepted from {ADDRESS}"
    )


def test_values_of_the_mail_are_filled_in() -> None:
    """The reply names the author's domain, and the stored report is JSON with the reply."""
    report = report_of("fails reject")
    found = reply_of(report, "gmail")
    assert "from sender.example is" in str(found.reply)
    assert '"replies":[{"receiver":"gmail"' in store_report(report).document


FACTS = [one.name for one in fields(Evidence) if one.default is None]
HARMFUL = (
    "fails_reject",
    "fails_quarantine",
    "spf_fails",
    "has_spf_error",
    "spf_allows_none",
    "is_listed",
    "is_dynamic",
)
GOOD = replace(
    Evidence(author_domain="sender.example", key_bits=2048),
    **{name: name not in HARMFUL for name in FACTS if name != "key_bits"},
)


@given(st.frozensets(st.sampled_from(FACTS)))
def test_missing_answers_never_refuse(unknown: frozenset[str]) -> None:
    """An undetermined fact defers a mail or leaves the reply open, and never refuses it."""
    for found in simulate_replies(replace(GOOD, **dict.fromkeys(unknown))):
        assert found.action is not Action.REJECT
        assert found.is_determined or unknown
