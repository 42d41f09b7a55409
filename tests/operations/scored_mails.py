"""A perfectly configured sender, its zone, and the operation that scores its mails.

The zone also contains all blocklists. A name that is missing in it is not listed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace
from twisted.internet.task import Clock

from mailcheck.assembly.checks import CheckRuntime, Resolvers, build_checks
from mailcheck.checks.deliverability.score import DeliverabilityReport
from mailcheck.checks.dns_answers import DnsStatus
from mailcheck.checks.findings import RecordToPublish
from mailcheck.cluster.local import LocalCluster
from mailcheck.core.deliverability_tests import ReceivedMail
from mailcheck.core.instants import instant_of
from mailcheck.core.messages import Session, TlsFacts
from mailcheck.operations.deliverability.authenticate_mail import AuthenticationCache
from mailcheck.operations.deliverability.score_mail import (
    MailBlocklists,
    ScoreMail,
    ScoringSettings,
)
from mailcheck.workers.scheduling import DirectWorker
from tests.fakes.clock_and_randomness import clock_and_randomness_of
from tests.fakes.fake_hosts import FakeHosts
from tests.fakes.mail_signer import ED25519, RSA, RSA_1024, SIGNED_AT
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.scripted_filter import ScriptedFilter
from tests.house import config_in_memory, run

ADDRESS = "8.8.4.10"
HELO = "mx.sender.example"
SENDER = "ann@sender.example"

TLS = TlsFacts("TLSv1.3", "TLS_AES_256_GCM_SHA384")

Records = Mapping[str, Mapping[str, Sequence[str]]]

PERFECT: Records = {
    "sender.example": {"TXT": ["v=spf1 mx -all"], "MX": [f"10 {HELO}."]},
    HELO: {"A": [ADDRESS], "TXT": ["v=spf1 a -all"]},
    "10.4.8.8.in-addr.arpa": {"PTR": [f"{HELO}."]},
    "_dmarc.sender.example": {"TXT": ["v=DMARC1; p=reject; rua=mailto:dmarc@sender.example"]},
    **{key.key_name: {"TXT": [key.key_record]} for key in (RSA, RSA_1024, ED25519)},
}

MAIL = (
    b"From: Ann Example <ann@sender.example>\r\n"
    b"To: test@mailcheck.example\r\n"
    b"Subject: The minutes of Monday\r\n"
    b"Date: Mon, 21 Sep 2026 14:13:20 +0000\r\n"
    b"Message-ID: <1.minutes@sender.example>\r\n"
    b"MIME-Version: 1.0\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\n"
    b"\r\n"
    b"Hello Bob,\r\n"
    b"\r\n"
    b"here is what we said on Monday: https://sender.example/minutes\r\n"
)


def received(raw_message: bytes | None = None, **changes: Any) -> ReceivedMail:
    """Return a signed mail over TLS. ``changes`` are fields of the session and the mail."""
    session = Session(ADDRESS, HELO, is_extended=True, tls=TLS)
    of_session = {
        key: changes.pop(key) for key in list(changes) if key in Session.__struct_fields__
    }
    mail = {
        "envelope_sender": SENDER,
        "received_at": instant_of(SIGNED_AT + 60),
        "raw_message": RSA.sign(MAIL) if raw_message is None else raw_message,
        **changes,
    }
    return ReceivedMail(session=replace(session, **of_session), **mail)


def zone_with(
    records: Records | None = None,
    *,
    without: Sequence[str] = (),
    failing: Mapping[Any, DnsStatus] | None = None,
    silent: Sequence[str] = (),
) -> MemoryZone:
    """Return the zone of the perfect sender with other records, or without some names."""
    kept = {name: node for name, node in PERFECT.items() if name not in without}
    return MemoryZone({**kept, **(records or {})}, failing=failing, silent=silent)


def scorer(
    zone: Any,
    *,
    content_filter: Any = None,
    rspamd: Any = None,
    clock: Clock | None = None,
    worker: Any = None,
    allow_private: bool = False,
    offers_tls: bool = True,
) -> ScoreMail:
    """Create the operation that scores mails, with a zone as DNS."""
    clock = clock or Clock()
    resolvers = Resolvers(zone, zone, zone)
    alone, clock_and_randomness = LocalCluster(clock), clock_and_randomness_of(clock)
    checks = build_checks(
        CheckRuntime(config_in_memory(), clock_and_randomness, resolvers, FakeHosts(), alone, alone)
    )
    return ScoreMail(
        zone,
        MailBlocklists(checks.catalogue, checks.lists),
        content_filter or ScriptedFilter(),
        rspamd,
        worker or DirectWorker(),
        AuthenticationCache(),
        ScoringSettings("mailcheck.example", allow_private, lambda _: offers_tls),
        lambda *_: None,
        clock,
    )


def score(
    zone: MemoryZone | None = None,
    mail: ReceivedMail | None = None,
    records: Sequence[RecordToPublish] = (),
    **options: Any,
) -> DeliverabilityReport:
    """Score a mail."""
    scoring = scorer(zone or zone_with(), **options)
    report: DeliverabilityReport = run(scoring.score(mail or received(), records))
    return report


def faults(report: DeliverabilityReport) -> list[tuple[str, int]]:
    """Return the id and the deducted tenths of each deduction."""
    return [(one.finding.id, one.tenths) for one in report.score.deductions]
