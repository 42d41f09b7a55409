"""Records with which a domain asks for its DMARC reports here, proven before they are shown."""

from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct
from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.dmarc.evaluate import DmarcVerdict, change_tags, evaluate_dmarc
from mailcheck.checks.dmarc.record import PREFIX, VERSION
from mailcheck.checks.dns_answers import Answers, Presence
from mailcheck.checks.findings import RecordToPublish
from mailcheck.checks.overlay import Change, Overlay
from mailcheck.operations.ask import Inquiry
from mailcheck.operations.dns_ports import Resolver

DEADLINE = 5.0
"""Seconds for all questions: somebody waits for the page."""


class OfferedRecords(Struct, frozen=True):
    """``is_asking``: reports come already. The records are to be published; none if unproven.

    ``own`` is the domain's, ``None`` where it names the address already; with ``agreement`` the
    operator agrees to take reports about the domain (RFC 9990 4).
    """

    domain: str
    is_asking: bool
    own: RecordToPublish | None = None
    agreement: RecordToPublish | None = None


class OfferRecords:
    """Finds them; ``resolver`` gives the resolver."""

    def __init__(self, resolver: Callable[[], Resolver], clock: IReactorTime) -> None:
        self._resolver = resolver
        self._clock = clock

    async def offer(self, domain: str, address: str) -> OfferedRecords:
        """Say what to publish so that reports about a domain are sent to an address."""
        inquiry = Inquiry.starting_now(self._resolver(), self._clock, DEADLINE)
        before = await inquiry.ask(partial(evaluate_dmarc, domain))
        uri = f"mailto:{address}"
        if _is_sent(before, uri):
            return OfferedRecords(domain, is_asking=True)
        if before.presence is Presence.UNDETERMINED:
            return OfferedRecords(domain, is_asking=False)
        own = _with_address(before, uri)
        asked = await inquiry.ask(partial(_judge, domain, (own,)))
        agreement = next(
            (
                RecordToPublish(one.record_name, "TXT", f"v={VERSION};")
                for one in asked.authorizations
                if one.uri.text.lower() == uri and one.presence is not Presence.FOUND
            ),
            None,
        )
        if not _is_sent(await inquiry.ask(partial(_judge, domain, (own, agreement))), uri):
            return OfferedRecords(domain, is_asking=False)
        return OfferedRecords(domain, is_asking=False, own=own, agreement=agreement)


def _judge(
    domain: str, records: Sequence[RecordToPublish | None], answers: Answers
) -> DmarcVerdict:
    """Judge a domain as it is once records are published."""
    changes = tuple(Change(one) for one in records if one is not None)
    return evaluate_dmarc(domain, Overlay(answers, changes))


def _is_sent(verdict: DmarcVerdict, uri: str) -> bool:
    """Tell whether receivers send reports to an address, by what is known for certain."""
    unknown = {
        one.uri.text for one in verdict.authorizations if one.presence is Presence.UNDETERMINED
    }
    return any(one.text.lower() == uri for one in verdict.report_uris) and uri not in unknown


def _with_address(verdict: DmarcVerdict, uri: str) -> RecordToPublish | None:
    """Give the domain's record with an address for reports; ``None`` if it has that already."""
    record = verdict.record
    if record is None or verdict.found_at is None:
        return RecordToPublish(PREFIX + verdict.domain, "TXT", f"v={VERSION}; p=none; rua={uri}")
    places = [one.text for one in record.rua if one.is_usable]
    if uri in map(str.lower, places):
        return None
    value = change_tags(record.text, rua=",".join([*places, uri]))
    return RecordToPublish(PREFIX + verdict.found_at, "TXT", value)
