"""Evaluation of the name in HELO or EHLO (RFC 5321 4.1.1.1, 4.1.4)."""

import re
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.dns_answers import Answers, HostAddresses, Presence, look_up_addresses
from mailcheck.checks.findings import Finding, RecordToPublish
from mailcheck.checks.findings_table import make_finding, undetermined
from mailcheck.checks.mail_domains import is_local_name, read_mail_domain
from mailcheck.core.addresses import parse_address_literal
from mailcheck.core.network_addresses import IpAddress, parse_ip_address

MAX_SHOWN = 80  # maximum number of characters of a quoted name

_HOST_NAME = re.compile(r"[a-z0-9_.-]+")  # RFC 952 and 1123 2.1; underscores are common


class HeloForm(Enum):
    """The form of the name, without DNS."""

    DOMAIN = "domain"
    LITERAL = "literal"
    """An address in brackets, for clients without a name."""
    SINGLE_LABEL = "single-label"
    MALFORMED = "malformed"
    """A bare address, or a text that is not a valid name."""
    UNKNOWN = "unknown"
    """The name was not recorded."""


class HeloVerdict(Struct, frozen=True):
    """The result for the HELO name.

    ``presence`` is about addresses of the name; only a name of the form ``DOMAIN`` can have some.
    ``resolves_to_client`` is `None` if it is undetermined or if the client has no usable address.
    """

    helo_name: str
    form: HeloForm
    presence: Presence
    addresses: tuple[IpAddress, ...]
    resolves_to_client: bool | None
    findings: tuple[Finding, ...] = ()

    @property
    def is_resolvable(self) -> bool | None:
        """Whether it is a full name with an address; `None` if it is undetermined."""
        if self.form is HeloForm.UNKNOWN or self.presence is Presence.UNDETERMINED:
            return None
        return self.presence is Presence.FOUND


def evaluate_helo(helo_name: str, client_ip: IpAddress | None, answers: Answers) -> HeloVerdict:
    """Evaluate the name from the known answers.

    :param helo_name: the name as the client sent it; empty if it is not known.
    :param client_ip: `None` for a client without a usable address, such as a private one.
    """
    form = _classify(helo_name)
    if form is not HeloForm.DOMAIN:
        verdict = HeloVerdict(helo_name, form, Presence.ABSENT, (), None)
        leads = _literal_address(helo_name) == client_ip if form is HeloForm.LITERAL else None
        verdict = replace(verdict, resolves_to_client=leads if client_ip is not None else None)
        finding = _describe_form(verdict)
        return replace(verdict, findings=() if finding is None else (finding,))
    host = look_up_addresses(answers, read_mail_domain(helo_name) or helo_name)
    verdict = HeloVerdict(
        helo_name, form, host.presence, host.addresses, _resolves_to(host, client_ip)
    )
    finding = _describe_name(verdict, host, client_ip)
    return replace(verdict, findings=() if finding is None else (finding,))


def _classify(helo_name: str) -> HeloForm:
    if not helo_name:
        return HeloForm.UNKNOWN
    if _literal_address(helo_name) is not None:
        return HeloForm.LITERAL
    name = read_mail_domain(helo_name)
    if name is None or _HOST_NAME.fullmatch(name) is None:
        return HeloForm.MALFORMED
    return HeloForm.DOMAIN if "." in name else HeloForm.SINGLE_LABEL


def _literal_address(helo_name: str) -> IpAddress | None:
    try:
        return parse_ip_address(parse_address_literal(helo_name))
    except ValueError:
        return None


def _resolves_to(host: HostAddresses, client_ip: IpAddress | None) -> bool | None:
    if client_ip is None:
        return None
    if client_ip in host.addresses:
        return True
    return False if host.is_complete else None


_FORMS_OF_NO_NAME = (HeloForm.LITERAL, HeloForm.SINGLE_LABEL, HeloForm.MALFORMED)


def _describe_form(verdict: HeloVerdict) -> Finding | None:
    if verdict.form not in _FORMS_OF_NO_NAME:
        return None
    return _describe_problem(verdict, verdict.form.value)


def _describe_problem(
    verdict: HeloVerdict, case: str, record: RecordToPublish | None = None
) -> Finding:
    return make_finding(
        "helo.unresolvable", case=case, proposed=record, helo_name=_excerpt(verdict.helo_name)
    )


def _describe_name(
    verdict: HeloVerdict, host: HostAddresses, client_ip: IpAddress | None
) -> Finding | None:
    if host.presence is Presence.UNDETERMINED:
        return undetermined("helo.undetermined", [host.name])
    record = None
    if client_ip is not None:
        rdtype = "A" if client_ip.version == 4 else "AAAA"
        record = RecordToPublish(host.name, rdtype, str(client_ip))
    if host.presence is Presence.ABSENT:
        if is_local_name(host.name):
            return _describe_problem(verdict, "local-name")
        return _describe_problem(verdict, "no-address", record)
    if verdict.resolves_to_client is not False:
        return None
    return make_finding(
        "helo.other-address",
        proposed=record,
        helo_name=_excerpt(verdict.helo_name),
        client_ip=client_ip,
    )


def _excerpt(text: str) -> str:
    cut = text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."
    return "".join(letter if letter.isprintable() else "?" for letter in cut)
