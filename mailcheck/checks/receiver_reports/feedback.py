"""Parser for failure reports and complaints: RFC 5965, RFC 6591, RFC 9991, and other forms.

Microsoft's complaints have no report part or an empty one, and Exim's failure reports are texts.

Each report is about one mail, which it contains. Local parts of addresses, the subject and the
text of this mail are personal data. They leave this module only if the caller asks for them.
Runs in a child process.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.content.bodies import choose_bodies, decode_entity, read_bodies
from mailcheck.checks.content.decoding import end_lines
from mailcheck.checks.content.header.fields import HeaderField, parse_moment, split_header
from mailcheck.checks.content.header.mailboxes import parse_mailboxes
from mailcheck.checks.content.structure import Entity, Structure, scan_structure
from mailcheck.checks.dkim.signature_headers import MalformedSignature, parse_tags
from mailcheck.checks.mail_domains import read_mail_domain
from mailcheck.checks.receiver_reports.limits import (
    MAX_COUNT,
    MAX_FEEDBACK,
    MAX_FEEDBACK_FIELDS,
    MAX_NAMES,
    MAX_REPORTED_TEXT,
    MAX_TEXT,
)
from mailcheck.checks.receiver_reports.report_builder import read_address
from mailcheck.core.domains.receiver_reports import Feedback, FeedbackType, ReportedMail
from mailcheck.core.errors import ReportRefused
from mailcheck.core.network_addresses import is_local_client

NO_REPORT = (
    "the mail contains no failure report or complaint: no part of type message/feedback-report"
)

_REPORT = "message/feedback-report"
_MAILS = frozenset(
    (
        *("message/rfc822", "message/global", "message/rfc822-headers", "message/global-headers"),
        *("text/rfc822-headers", "text/rfc822-header", "text/rfc822"),
    )
)

_CLIENT = r"([0-9a-f.:]{7,45})"
_CLIENT_FIELDS = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        ("x-sender-ip", rf"^\[?{_CLIENT}\]?$"),
        ("received-spf", rf"\bclient-ip=\"?{_CLIENT}"),
        ("authentication-results", rf"\bsender ip is {_CLIENT}"),
    )
)
"""Fields with which a receiver records the address of the client, and the address in them."""

MAX_HOP = 1_000
"""Maximum number of characters of a Received field that are searched."""

_BY = re.compile(r"\sby\s")
_ADDRESS = re.compile(r"[0-9a-f.:]{7,45}", re.IGNORECASE)

_AT = re.compile("@|%40|\uff20", re.IGNORECASE)
_ANGLE = re.compile(r"^.*<([^<>]*)>.*$", re.DOTALL)
_SOURCE = re.compile(r"^\s*(?:ipv6:)?", re.IGNORECASE)

_RESULT = re.compile(
    r"(?:^|[\s;])(arc|bimi|dkim|dkim-adsp|dkim-atps|dmarc|iprev|spf)\s{0,9}=\s{0,9}"
    r"(pass|fail|softfail|hardfail|neutral|none|policy|temperror|permerror)(?![\w-])",
    re.IGNORECASE | re.ASCII,
)

_TYPES = {kind.value: kind for kind in FeedbackType} | {"opt-out-list": FeedbackType.OPT_OUT}
"""RFC 5965 7.3 and RFC 6449. Receivers treat all other types like ``other``."""

_RECIPIENT = "x-hmxmroriginalrecipient"


class FeedbackReport(Struct, frozen=True):
    """A report about one mail.

    ``domains`` are those for which the mail was sent, the author domain first. ``key`` identifies
    the report.
    """

    feedback: Feedback
    domains: tuple[str, ...]
    key: str
    problems: tuple[str, ...] = ()


class NoReport(ReportRefused):
    """The mail contains no report. ``has_mail``: it contains another mail."""

    def __init__(self, *, has_mail: bool) -> None:
        super().__init__(NO_REPORT)
        self.has_mail = has_mail

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(NoReport, has_mail=self.has_mail), ()


def read_feedback_mail(raw_message: bytes, keeps_mail: bool = False) -> FeedbackReport:
    """Read the report in a mail.

    :param keeps_mail: also return the personal data of the reported mail.
    :raises ReportRefused: the mail contains no such report, or the report is malformed.
    """
    if len(raw_message) > MAX_FEEDBACK:
        raise ReportRefused(f"it is over {MAX_FEEDBACK // 2**20} MB")
    mail = end_lines(raw_message)
    structure = scan_structure(mail)
    leaves = list(structure.root.leaves())
    places = [place for place, leaf in enumerate(leaves) if leaf.content_type == _REPORT]
    place = places[0] if places else -1
    attached = next((leaf for leaf in leaves[place + 1 :] if leaf.content_type in _MAILS), None)
    reported = _Reported(b"" if attached is None else decode_entity(mail, attached))
    of_exim = None if places or attached is not None else _read_exim_report(mail, leaves)
    if of_exim is not None:
        report, reported = of_exim
    elif places:
        report = _Fields(decode_entity(mail, leaves[place]))
    elif _is_of_microsoft(structure, reported):
        report = _microsoft_report(structure)
    else:
        raise NoReport(has_mail=any(leaf.content_type in _MAILS for leaf in leaves))
    if not report.text("feedback-type"):
        raise ReportRefused("it has no field Feedback-Type")
    signatures = list(reported.signatures())
    signed_by = _name(report.text("dkim-domain")) or (signatures[0][0] if signatures else "")
    feedback = _feedback(report, reported, signed_by, signatures)
    if keeps_mail:
        feedback = _with_mail(feedback, report, reported)
    domains = (
        feedback.author_domain,
        *map(_name, report.texts("reported-domain")),
        signed_by,
        *(domain for domain, _ in signatures),
        feedback.envelope_domain,
    )
    found = tuple(dict.fromkeys(filter(None, domains)))
    if not found:
        raise ReportRefused("it names no domain: neither in From nor in Reported-Domain")
    problems = list(report.problems)
    if not reported.fields:
        problems.append("it does not contain the reported mail or its header")
    return FeedbackReport(feedback, found, _key(structure, mail), tuple(problems))


class _Fields:
    """Header fields by name, with printable texts of limited length."""

    def __init__(self, data: bytes) -> None:
        data = data.lstrip()
        section = split_header(data, 0, len(data), MAX_FEEDBACK_FIELDS)
        self.fields = section.fields
        self.problems = section.problems

    def all(self, name: str) -> list[HeaderField]:
        """Return the fields of a (lower case) name."""
        return [field for field in self.fields if field.name.lower() == name][:MAX_NAMES]

    def texts(self, name: str) -> list[str]:
        """Return the values of all fields of a name."""
        return [_clean(field.decode()) for field in self.all(name)]

    def text(self, *names: str) -> str:
        """Return the first value that is not empty of the fields with these names."""
        return next((text for name in names for text in self.texts(name) if text), "")

    def addresses(self, name: str) -> list[str]:
        """Return the addresses in all fields of a name."""
        found = (parse_mailboxes(field.as_text()) for field in self.all(name))
        return [address for some in found for address, _ in some if "@" in address]

    def domain(self, name: str) -> str:
        """Return the domain of the first address in the fields of a name."""
        return next((_name(address.rpartition("@")[2]) for address in self.addresses(name)), "")


class _Reported(_Fields):
    """The reported mail, or its header."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.data = data

    def signatures(self) -> Iterator[tuple[str, str]]:
        """Yield domain and selector of each DKIM signature."""
        for field in self.all("dkim-signature"):
            try:
                tags = parse_tags(field.body)
            except MalformedSignature:
                continue
            domain = _name(tags.text("d"))
            if domain:
                yield domain, _name(tags.text("s"))


def _feedback(
    report: _Fields, reported: _Reported, signed_by: str, signatures: list[tuple[str, str]]
) -> Feedback:
    author = reported.domain("from")
    campaign_field, campaign = _campaign(reported, author, signed_by, signatures)
    own = next((selector for domain, selector in signatures if domain == signed_by), "")
    results = (
        f"{method}={result}".lower()
        for field in report.all("authentication-results")
        for method, result in _RESULT.findall(field.decode())
    )
    return Feedback(
        type=_TYPES.get(report.text("feedback-type").lower(), FeedbackType.OTHER),
        source=read_address(_SOURCE.sub("", report.text("source-ip")))
        or (_find_client(reported) if _is_jmrp(report, reported) else "")
        or _sent_from(reported),
        author_domain=author,
        envelope_domain=report.domain("original-mail-from"),
        signing_domain=signed_by,
        selector=_name(report.text("dkim-selector")) or own,
        campaign=campaign,
        campaign_field=campaign_field,
        failure=_token(report.text("auth-failure")),
        alignment=_tokens(report.text("identity-alignment")),
        delivery=_token(report.text("delivery-result")),
        results=tuple(dict.fromkeys(results))[:MAX_NAMES],
        incidents=_incidents(report.text("incidents")),
        arrived_at=parse_moment(
            report.text("arrival-date", "received-date") or reported.text("date")
        ),
        program=without_local_part(report.text("user-agent")),
    )


def _is_jmrp(report: _Fields, reported: _Reported) -> bool:
    """Return whether a complaint comes from Microsoft's Junk Mail Reporting Program."""
    return "jmrp" in report.text("user-agent").lower() or bool(reported.all(_RECIPIENT))


def _find_client(reported: _Reported) -> str:
    """Return the address of the client that Microsoft recorded, or an empty string.

    The topmost Received fields name relays of Microsoft, which have public addresses.
    """
    for name, pattern in _CLIENT_FIELDS:
        for text in reported.texts(name)[:1]:
            found = pattern.search(text)
            address = None if found is None else read_address(found[1])
            if address is not None and not is_local_client(address):
                return address
    return ""


def _sent_from(reported: _Reported) -> str:
    """Return the address from which the receiver got the mail; for reports that omit it.

    It is the topmost one in its Received fields that is not private.
    """
    for field in reported.all("received"):
        origin = _BY.split(field.decode()[:MAX_HOP], maxsplit=1)[0]
        for text in _ADDRESS.findall(origin):
            address = read_address(text)
            if address is not None and not is_local_client(address):
                return address
    return ""


def _campaign(
    reported: _Reported, author: str, signed_by: str, signatures: list[tuple[str, str]]
) -> tuple[str, str]:
    """Return the field that names the campaign of a mail, and its value.

    A mail without such a field belongs to the domain of its signature.
    """
    for name in ("Feedback-ID", "List-Id"):
        text = reported.text(name.lower())
        value = without_local_part(_ANGLE.sub(r"\1", text) if name == "List-Id" else text)
        if value:
            return name, value
    signers = [domain for domain, _ in signatures]
    signer = author if author in signers else signed_by
    return ("DKIM", signer) if signer else ("", "")


def without_local_part(text: str) -> str:
    """Return a text without all that stands before its last ``@``."""
    return _AT.split(text)[-1].strip()


_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]{0,251}[a-z0-9_])?", re.ASCII)
_TOKEN = re.compile(r"[a-z][a-z-]{0,29}", re.ASCII)


def _clean(text: str) -> str:
    cut = text.strip()[:MAX_TEXT]
    return "".join(c if c.isprintable() else " " for c in cut).strip()


def _name(text: str) -> str:
    """Return a domain in lower-case A-labels, or an empty string for any other text."""
    domain = read_mail_domain(text.strip()) or ""
    return domain if _NAME.fullmatch(domain) else ""


def _token(text: str) -> str:
    value = text.lower()
    return value if _TOKEN.fullmatch(value) else ""


def _tokens(text: str) -> str:
    return ", ".join(filter(None, (_token(word.strip()) for word in text.split(",")[:MAX_NAMES])))


def _incidents(text: str) -> int:
    """Return the number of equal incidents; an invalid number counts as one."""
    is_number = text.isascii() and text.isdigit() and len(text) < 20
    return int(text) if is_number and 0 < int(text) <= MAX_COUNT else 1


# Failure reports of Exim are texts with lines like "Sender Domain: d.example". The header of the
# mail follows a line of its own.

EXIM = "Exim"

_EXIM_COPY = re.compile(
    rb"^-{4,}[^\n]*copy of the (?:headers|message)[^\n]*\n", re.IGNORECASE | re.MULTILINE
)
_EXIM_LINE = re.compile(r"^[ \t]*([A-Z][A-Za-z ]{1,30}):[ \t]*(\S.*)$", re.MULTILINE)
_EXIM_FIELDS = {
    "sender domain": "Reported-Domain",
    "sender ip address": "Source-IP",
    "received date": "Arrival-Date",
}
_EXIM_DELIVERIES = {"quarantine": "spam", "reject": "reject", "none": "delivered"}


def _read_exim_report(mail: bytes, leaves: Sequence[Entity]) -> tuple[_Fields, _Reported] | None:
    """Return the fields of a report as text and the reported mail, or `None` for another text."""
    first = next((leaf for leaf in leaves if leaf.content_type == "text/plain"), None)
    if first is None:
        return None
    data = decode_entity(mail, first)
    copy = _EXIM_COPY.search(data)
    words = (data if copy is None else data[: copy.start()]).decode("utf-8", "replace")
    found = _EXIM_LINE.findall(words[:MAX_REPORTED_TEXT])
    told = {name.lower(): _clean(value) for name, value in found}
    if not {"sender domain", "sender ip address"} <= told.keys():
        return None
    methods = ("spf", "dkim")
    aligned = [method for method in methods if told.get(f"{method} alignment", "").lower() == "yes"]
    lines = [
        "Feedback-Type: auth-failure",
        "Auth-Failure: dmarc",
        f"User-Agent: {EXIM}",
        f"Identity-Alignment: {', '.join(aligned) or 'none'}",
        f"Delivery-Result: {_EXIM_DELIVERIES.get(told.get('dmarc results', '').lower(), '')}",
        *(f"{field}: {told[name]}" for name, field in _EXIM_FIELDS.items() if name in told),
    ]
    reported = b"" if copy is None else data[copy.end() :].lstrip()
    return _Fields("\r\n".join(lines).encode()), _Reported(reported)


# Reports of Microsoft's Junk Mail Reporting Program have no feedback-report part. The address of
# the sender is in the subject, and the recipient is in a field added to the reported mail.

_SUBJECT = re.compile(r"complaint about message from ([0-9a-f:.]{2,45})", re.IGNORECASE)
JMRP = "Microsoft JMRP"


def _is_of_microsoft(structure: Structure, reported: _Reported) -> bool:
    if not reported.fields:
        return False
    return _subject(structure) is not None or bool(reported.all(_RECIPIENT))


def _subject(structure: Structure) -> re.Match[str] | None:
    subjects = (field for field in structure.fields if field.name.lower() == "subject")
    return next((_SUBJECT.search(_clean(subject.decode())) for subject in subjects), None)


def _microsoft_report(structure: Structure) -> _Fields:
    found = _subject(structure)
    lines = ["Feedback-Type: abuse", f"User-Agent: {JMRP}"]
    lines += [f"Source-IP: {found[1]}"] if found else []
    return _Fields("\r\n".join(lines).encode())


def _key(structure: Structure, mail: bytes) -> str:
    """Return a digest of the id of the report's mail, or of its body if it has none."""
    ids = [field.body for field in structure.fields if field.name.lower() == "message-id"]
    start, end = structure.root.body
    return hashlib.sha256(ids[0] if ids and ids[0] else mail[start:end]).hexdigest()[:32]


def _with_mail(feedback: Feedback, report: _Fields, reported: _Reported) -> Feedback:
    """Add the personal data of the reported mail."""
    data = reported.data
    bodies = read_bodies(data, choose_bodies(scan_structure(data).root), [])
    recipients = (
        *report.addresses("original-rcpt-to"),
        *reported.addresses(_RECIPIENT),
        *reported.addresses("to"),
    )
    mail = ReportedMail(
        sender=next((_clean(address) for address in report.addresses("original-mail-from")), ""),
        recipients=tuple(dict.fromkeys(map(_clean, recipients)))[:MAX_NAMES],
        author=reported.text("from"),
        subject=reported.text("subject"),
        text=bodies.text[:MAX_REPORTED_TEXT],
    )
    return replace(feedback, mail=mail)
