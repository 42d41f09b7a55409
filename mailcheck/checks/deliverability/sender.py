"""Whether bounces to the envelope sender and replies to the author can be delivered.

Receivers look up both domains. Many reject mail from a domain that does not exist, has no mail
host, or declares that it receives no mail (450 4.1.8, 550 4.1.8, 550 5.7.27).
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.dns_answers import Answers, Presence
from mailcheck.checks.findings import ChargedFinding, Finding
from mailcheck.checks.hosts.mx import MxVerdict, evaluate_mx
from mailcheck.checks.mail_domains import is_local_name, registrable_domain
from mailcheck.checks.weights import charge


class SenderDomain(Struct, frozen=True):
    """The mail hosts of a sender's domain.

    ``has_zone`` is false if the registered domain does not exist, so that no record can be
    published for it.
    """

    mx: MxVerdict
    has_zone: bool = True

    @property
    def problem(self) -> str:
        """Reason why mail to the sender cannot be delivered; empty without a known reason.

        A name in a private network is reported by SPF and DMARC.
        """
        own = self.mx.implicit_host
        if is_local_name(self.mx.domain):
            return ""
        if not self.mx.exists:
            return "does not exist in DNS"
        if self.mx.is_null_mx:
            return "declares that it receives no mail (null MX, RFC 7505)"
        if own is not None and own.presence is Presence.ABSENT:
            return "has neither an MX record nor an address"
        return ""


def evaluate_sender(domain: str, answers: Answers, *, allow_private: bool) -> SenderDomain:
    """Judge the mail hosts of a domain from the known answers."""
    mx = evaluate_mx(domain, answers, allow_private=allow_private)
    owner = registrable_domain(domain)
    if mx.exists or owner == domain:
        return SenderDomain(mx, mx.exists)
    return SenderDomain(mx, evaluate_mx(owner, answers).exists)


def charge_sender(
    envelope: SenderDomain | None, author: SenderDomain | None
) -> Iterator[ChargedFinding]:
    """Price senders that cannot receive mail; a domain in both roles is charged once."""
    if envelope is not None and envelope.problem:
        yield charge(
            "sender.bounces-undeliverable",
            case=_choose_case(envelope),
            domain=envelope.mx.domain,
            problem=envelope.problem,
        )
    is_both = envelope is not None and author is not None and envelope.mx.domain == author.mx.domain
    if author is not None and author.problem and not is_both:
        yield charge(
            "sender.replies-undeliverable",
            case=_choose_case(author),
            domain=author.mx.domain,
            problem=author.problem,
        )


def _choose_case(sender: SenderDomain) -> str:
    if not sender.mx.exists:
        return "no-domain"
    return "null-mx" if sender.mx.is_null_mx else "no-mx"


_TO_PUBLISH = ("spf.result-none", "dmarc.no-record", "dkim.unsigned")


def without_absent_zones(
    charged: Iterable[ChargedFinding], senders: Iterable[SenderDomain | None]
) -> Iterator[ChargedFinding]:
    """Remove advice to publish a record in a zone that does not exist."""
    absent = {
        registrable_domain(sender.mx.domain)
        for sender in senders
        if sender is not None and not sender.has_zone
    }
    for charged_finding in charged:
        zone = next((zone for zone in absent if _is_about(charged_finding.finding, zone)), None)
        if zone is None:
            yield charged_finding
            continue
        words = (
            f"{zone} does not exist, so no record can be published there. Send from a domain of"
            " yours that exists."
        )
        finding = replace(
            charged_finding.finding, fix=words, proposed=None, alternatives=(), beside=()
        )
        yield replace(charged_finding, finding=finding)


def _is_about(finding: Finding, zone: str) -> bool:
    """Return whether a finding asks for a record in a zone."""
    if any(registrable_domain(record.name) == zone for record in finding.candidate_records):
        return True
    return finding.id in _TO_PUBLISH and zone in f"{finding.meaning} {finding.fix}"
