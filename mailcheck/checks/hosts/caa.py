"""Evaluation of CAA records: which certificate authorities may issue (RFC 8659, RFC 9495).

The records restrict issuance only. A certificate that exists stays valid.
"""

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from dns.rdtypes.ANY.CAA import CAA
from msgspec import Struct

from mailcheck.checks.aliases import alias_target, publish_at_target
from mailcheck.checks.dns_answers import Answers, DnsAnswer, Presence, look_up
from mailcheck.checks.findings import Finding, RecordToPublish
from mailcheck.checks.findings_table import make_finding, undetermined

CRITICAL = 128  # bit 0 of the flags, RFC 8659 4.1

ISSUE, ISSUE_WILD, ISSUE_MAIL, ISSUE_MARK = "issue", "issuewild", "issuemail", "issuevmc"
ISSUERS = (ISSUE, ISSUE_WILD, ISSUE_MAIL, ISSUE_MARK)
"""Tags whose value names an authority: for hosts, for wildcards, for S/MIME (RFC 9495), and for
mark certificates (requirements of the AuthIndicators group)."""

IODEF, CONTACT_MAIL, CONTACT_PHONE = "iodef", "contactemail", "contactphone"
KNOWN_TAGS = (*ISSUERS, IODEF, CONTACT_MAIL, CONTACT_PHONE)

MAX_SHOWN = 80  # characters of a value that are quoted
MAX_RECORDS = 50
"""Maximum number of records that are evaluated. Authorities read all, but no domain needs more."""

_HOST = re.compile(r"[a-z0-9](?:-*[a-z0-9])*(?:\.[a-z0-9](?:-*[a-z0-9])*)*", re.ASCII | re.I)
_NAMES_IN_TEXT = re.compile(r"(?:[a-z0-9-]{1,63}\.){1,10}[a-z]{2,63}", re.ASCII | re.I)
_TAG = re.compile(r"[A-Za-z0-9](?:-*[A-Za-z0-9])*", re.ASCII)
_VALUE = re.compile(r"[!-:<-~]*", re.ASCII)
_REPORT_URL = re.compile(r"mailto:[^@\s]+@[^@\s]+|https?://[!-~]+", re.ASCII)
_ADDRESS = re.compile(r"[\w.+-]+@[A-Za-z0-9.-]+", re.ASCII)
_WHAT = {
    ISSUE: "certificates for hosts",
    ISSUE_WILD: "wildcard certificates",
    ISSUE_MAIL: "S/MIME certificates",
    ISSUE_MARK: "mark certificates for BIMI",
}


class CaaProperty(Struct, frozen=True):
    """One record. ``tag`` is in lower case, since tags are compared without case (RFC 8659 4.1).

    ``issuer`` is the authority that the record allows: empty if it allows none, `None` for a
    record of another kind or with a malformed value. ``text`` is the record as in a zone file.
    """

    flags: int
    tag: str
    value: str
    issuer: str | None
    text: str

    @property
    def is_critical(self) -> bool:
        """Whether an authority that does not know the tag must not issue."""
        return bool(self.flags & CRITICAL)


class CaaVerdict(Struct, frozen=True):
    """The relevant records (RFC 8659 3): those at the nearest name that has any.

    ``found_at`` is that name, or `None` without records.
    """

    domain: str
    presence: Presence
    found_at: str | None
    properties: tuple[CaaProperty, ...]
    findings: tuple[Finding, ...]

    @property
    def is_blocked(self) -> bool:
        """Whether no authority may issue, because of a critical tag that none knows."""
        return any(entry.is_critical and entry.tag not in KNOWN_TAGS for entry in self.properties)

    def issuers(self, tag: str) -> tuple[str, ...] | None:
        """Return the authorities that may issue; empty for none, `None` for any.

        A malformed value allows no authority (RFC 8659 4.2).
        """
        found = [entry for entry in self.properties if entry.tag == tag]
        if self.is_blocked:
            return ()
        return tuple(sorted({entry.issuer for entry in found if entry.issuer})) if found else None


def evaluate_caa(domain: str, answers: Answers) -> CaaVerdict:
    """Evaluate the CAA records of a domain.

    All names up to the top-level domain are looked up at once. The first one with records counts.
    """
    labels = domain.split(".")
    names = [".".join(labels[start:]) for start in range(len(labels))]
    for answer in [look_up(answers, name, "CAA") for name in names]:
        name = answer.question.name
        if not answer.status.is_determined:
            silence = undetermined("caa.undetermined", [name])
            return CaaVerdict(domain, Presence.UNDETERMINED, None, (), (silence,))
        found = _read(answer)
        if found:
            target = alias_target(answer)
            findings = (publish_at_target(finding, name, target) for finding in _judge(name, found))
            return CaaVerdict(domain, Presence.FOUND, name, found, tuple(findings))
    absent = make_finding("caa.absent", domain=domain)
    return CaaVerdict(domain, Presence.ABSENT, None, (), (absent,))


def _read(answer: DnsAnswer) -> tuple[CaaProperty, ...]:
    records = sorted(
        (record for record in answer.records if isinstance(record, CAA)), key=CAA.to_text
    )
    return tuple(map(_property, records[:MAX_RECORDS]))


def _property(record: CAA) -> CaaProperty:
    tag = record.tag.decode("ascii", "replace").lower()
    value = record.value.decode("utf-8", "replace")
    issuer = read_issuer(value) if tag in ISSUERS else None
    return CaaProperty(record.flags, tag, value, issuer, record.to_text())


def read_issuer(value: str) -> str | None:
    """Return the authority in a value: empty if it names none, `None` if it is malformed.

    The grammar is that of RFC 8659 4.2: a domain name, and parameters after semicolons.
    """
    name, *parameters = (part.strip(" \t") for part in value.split(";"))
    if name and _HOST.fullmatch(name) is None:
        return None
    if parameters and not parameters[-1]:
        parameters.pop()  # only the last one may be empty
    for parameter in parameters:
        tag, equals, text = (part.strip(" \t") for part in parameter.partition("="))
        if not equals or _TAG.fullmatch(tag) is None or _VALUE.fullmatch(text) is None:
            return None
    return name.lower()


def _judge(name: str, found: Sequence[CaaProperty]) -> Iterator[Finding]:
    for entry in found:
        yield from _judge_property(name, entry)
    for tag in ISSUERS:
        same = [found_entry for found_entry in found if found_entry.tag == tag]
        yield from _judge_issuers(name, tag, same)
    tags = {found_entry.tag for found_entry in found}
    if ISSUE in tags and ISSUE_MAIL not in tags:
        yield make_finding("caa.mail-unrestricted", name=name)


def _judge_property(name: str, one: CaaProperty) -> Iterator[Finding]:
    if one.tag not in KNOWN_TAGS:
        yield _unknown(name, one)
    elif one.flags not in (0, CRITICAL):
        yield make_finding(
            "caa.reserved-flags",
            proposed=_rewrite(name, one, one.flags & CRITICAL, one.tag),
            replaced=(one.text.lower(),),
            one=_shown(one),
            name=name,
            flags=one.flags,
            critical=CRITICAL,
        )
    elif one.tag in ISSUERS and one.issuer is None:
        yield make_finding(
            "caa.syntax",
            proposed=_repair(name, one),
            replaced=(one.text.lower(),),
            one=_shown(one),
            name=name,
            what=_WHAT[one.tag],
        )
    elif one.tag == IODEF and _REPORT_URL.fullmatch(one.value) is None:
        yield make_finding(
            "caa.bad-report-address",
            proposed=_repair_report_address(name, one),
            replaced=(one.text.lower(),),
            one=_shown(one),
            name=name,
        )


def _unknown(name: str, one: CaaProperty) -> Finding:
    """Return a finding about a tag that no authority knows; a near miss is corrected."""
    near = get_close_matches(one.tag, KNOWN_TAGS, 1)
    proposed = _rewrite(name, one, one.flags & CRITICAL, near[0]) if near else None
    if one.is_critical:
        proposed = proposed or _rewrite(name, one, 0, one.tag)
    return make_finding(
        "caa.unknown-critical" if one.is_critical else "caa.unknown-tag",
        case="near" if near else "",
        proposed=proposed,
        replaced=(one.text.lower(),),
        near=near[0] if near else "",
        one=_shown(one),
        name=name,
        tag=one.tag[:MAX_SHOWN],
    )


def _judge_issuers(name: str, tag: str, same: Sequence[CaaProperty]) -> Iterator[Finding]:
    """Compare the records of one tag. They allow each authority that any of them names."""
    denials = [entry for entry in same if entry.issuer == ""]
    grants = [entry for entry in same if entry.issuer]
    if denials and grants:
        yield make_finding(
            "caa.contradiction",
            proposed=RecordToPublish(name, "CAA", grants[0].text),
            replaced=tuple(denial.text.lower() for denial in denials),
            denials=_shown(denials[0]),
            name=name,
            what=_WHAT[tag],
            grants=_shown(grants[0]),
        )
    elif denials and tag == ISSUE_MAIL:
        yield make_finding("caa.mail-forbidden", name=name)
    elif denials and tag == ISSUE_MARK:
        yield make_finding("caa.marks-forbidden", name=name)


def _rewrite(name: str, one: CaaProperty, flags: int, tag: str) -> RecordToPublish:
    """Return the record with other flags and another tag; its value keeps its escapes."""
    value = one.text.split(" ", 2)[2]
    return RecordToPublish(name, "CAA", f"{flags} {tag} {value}")


def _repair(name: str, one: CaaProperty) -> RecordToPublish | None:
    """Return the intended record if the value names exactly one authority and no parameters."""
    names = dict.fromkeys(map(str.lower, _NAMES_IN_TEXT.findall(one.value)))
    if len(names) != 1 or ";" in one.value or "@" in one.value:
        return None
    return RecordToPublish(name, "CAA", f'{one.flags} {one.tag} "{next(iter(names))}"')


def _repair_report_address(name: str, one: CaaProperty) -> RecordToPublish | None:
    if _ADDRESS.fullmatch(one.value.strip()) is None:
        return None
    return RecordToPublish(name, "CAA", f'{one.flags} {one.tag} "mailto:{one.value.strip()}"')


def _shown(one: CaaProperty) -> str:
    return f"'{one.text[:MAX_SHOWN]}'"
