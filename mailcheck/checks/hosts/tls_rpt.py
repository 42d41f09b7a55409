"""Evaluation of TLS-RPT records, with which senders report failed encryption (RFC 8460)."""

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from mailcheck.checks.aliases import alias_target, publish_at_target
from mailcheck.checks.dns_answers import Answers, Presence, look_up, txt_values
from mailcheck.checks.findings import Finding, RecordToPublish
from mailcheck.checks.findings_table import make_finding, undetermined
from mailcheck.checks.tags.misplaced import find_elsewhere
from mailcheck.checks.tags.tag_lists import has_exact_version, parse_tag_list
from mailcheck.checks.tags.tag_repair import (
    MAX_REPAIRED,
    clean_uris,
    find_tags,
    lost_addresses,
    name_mistake,
    read_report_uris,
    start_of,
)

VERSION = "TLSRPTv1"
PREFIX = "_smtp._tls."
MAX_URIS = 20

_URI = re.compile(r"mailto:(?!//)[^@\s,!;]+@[A-Za-z0-9.-]+|https://[^\s,!;]+", re.ASCII)


class TlsRptVerdict(Struct, frozen=True):
    """The record and its report addresses."""

    domain: str
    presence: Presence
    text: str
    rua: tuple[str, ...]
    findings: tuple[Finding, ...]


def evaluate_tls_rpt(domain: str, answers: Answers, report_to: str = "") -> TlsRptVerdict:
    """Evaluate the record at ``_smtp._tls.<domain>`` (RFC 8460 3).

    :param report_to: the mail address that the advice suggests for reports; empty for none.
    """
    answer = look_up(answers, PREFIX + domain, "TXT")
    if not answer.status.is_determined:
        silence = undetermined("tls-rpt.undetermined", [PREFIX + domain])
        return TlsRptVerdict(domain, Presence.UNDETERMINED, "", (), (silence,))
    target = alias_target(answer)
    texts = [text for text in txt_values(answer) if has_exact_version(text, VERSION)]
    if len(texts) != 1:
        near = [text for text in txt_values(answer) if "tlsrpt" in start_of(text).replace("-", "")]
        if texts:
            finding = _several(domain, texts)
        else:
            finding = _unreadable(domain, near) if near else _absent(domain, answers, report_to)
        finding = publish_at_target(finding, PREFIX + domain, target)
        text = near[0] if near and not texts else ""
        return TlsRptVerdict(domain, Presence.ABSENT, text, (), (finding,))
    parts = (parse_tag_list(texts[0]).get("rua") or "").split(",", MAX_URIS)[:MAX_URIS]
    uris = [part.strip() for part in parts]
    good = tuple(uri for uri in uris if _URI.fullmatch(uri))
    syntax = publish_at_target(_syntax(domain, texts[0], report_to), PREFIX + domain, target)
    findings = () if len(good) == len(uris) else (syntax,)
    presence = Presence.FOUND if good else Presence.ABSENT
    return TlsRptVerdict(domain, presence, texts[0], good, findings)


def propose_tls_rpt(domain: str, rua: Iterable[str]) -> RecordToPublish | None:
    """Return the record that requests reports, or `None` without an address.

    :param rua: the URIs; unlike with DMARC, hosts of other domains need no authorization.
    """
    places = ",".join(rua)
    value = f"v={VERSION}; rua={places}"
    return RecordToPublish(PREFIX + domain, "TXT", value) if places else None


def _report_uris(report_to: str) -> tuple[str, ...]:
    return (f"mailto:{report_to}",) if report_to else ()


def _absent(domain: str, answers: Answers, report_to: str) -> Finding:
    proper = PREFIX + domain
    elsewhere = find_elsewhere(
        (f"{proper}.{domain}", f"_tls.{domain}", f"smtp._tls.{domain}", domain),
        lambda text: has_exact_version(text, VERSION),
        answers,
    )
    if elsewhere is not None:
        place, text = elsewhere
        return make_finding(
            "tls-rpt.misplaced",
            proposed=RecordToPublish(proper, "TXT", text),
            place=place,
            proper=proper,
        )
    return make_finding(
        "tls-rpt.absent", proposed=propose_tls_rpt(domain, _report_uris(report_to)), domain=domain
    )


def _several(domain: str, texts: Sequence[str]) -> Finding:
    """Return a finding for several records; the proposed record has the addresses of all."""
    uris = dict.fromkeys(uri for text in texts for uri in _find_intended_uris(text))
    kept = propose_tls_rpt(domain, uris)
    record = kept or RecordToPublish(PREFIX + domain, "TXT", texts[0])
    return make_finding("tls-rpt.several", proposed=record, domain=domain)


def _unreadable(domain: str, texts: Sequence[str]) -> Finding:
    mistake = name_mistake(texts[0])
    return make_finding(
        "tls-rpt.unreadable",
        proposed=propose_tls_rpt(domain, _find_intended_uris(" ; ".join(texts))),
        prefix=PREFIX,
        domain=domain,
        texts=texts[0][:40],
        version=VERSION,
        mistake=f": {mistake}" if mistake else "",
    )


def _find_intended_uris(text: str) -> list[str]:
    """Return the intended report addresses of a record; empty if one of them is unclear."""
    meant = [
        uri
        for name, written in find_tags(clean_uris(text[:MAX_REPAIRED]), ("v", "rua"))
        if name == "rua"
        for uri in read_report_uris(written)
        if _URI.fullmatch(uri)
    ]
    return [] if lost_addresses([text], ",".join(meant)) else meant


def _syntax(domain: str, text: str, report_to: str) -> Finding:
    meant = _find_intended_uris(text)
    is_empty = not meant and "@" not in text
    return make_finding(
        "tls-rpt.syntax",
        proposed=propose_tls_rpt(domain, _report_uris(report_to) if is_empty else meant),
        domain=domain,
        prefix=PREFIX,
    )
