"""The MX check as JSON (docs/reference/contract.md)."""

from collections.abc import Iterable
from typing import Annotated, Any

from mailcheck.api.domains.findings import problem_texts
from mailcheck.api.shapes import (
    ABSENT,
    Absent,
    Shape,
    Texts,
    doc,
    partial_schema,
    shape_from,
    with_wire_names,
)
from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.hosts import mx as verdicts
from mailcheck.operations.domains import check_mx


class MailHost(Shape):
    """A host that receives mail for a domain."""

    exchange: Annotated[str, doc("host name")]
    priority: Annotated[int, doc("preference of the MX record; lowest first", ge=0, le=65_535)]
    ip: Annotated[Texts, doc("its addresses, IPv4 first")]
    problem: Annotated[verdicts.HostProblem | Absent, doc("why mail may not reach the host")] = (
        ABSENT
    )


class MxCheck(Shape):
    """MX, SPF and DMARC of a domain, all of which were determined."""

    domain: Annotated[str, doc("the checked domain, lower case, in A-labels")]
    has_mx: Annotated[bool, doc("whether MX records exist")]
    records: Annotated[tuple[MailHost, ...], doc("sorted by priority, then by name")]
    null_mx: Annotated[bool, doc("the domain accepts no mail (RFC 7505)")]
    implicit_mx: Annotated[
        bool, doc("no MX record: mail is delivered to the domain's address (RFC 5321 5.1)")
    ]
    has_spf: bool
    has_dmarc: bool
    exists: Annotated[bool, doc("false: the domain does not exist (NXDOMAIN)")]
    note: Annotated[
        str | Absent, doc("one sentence if the domain accepts no mail or does not exist")
    ] = ABSENT
    spf_record: Annotated[
        str | Absent, doc("present if hasSpf is true; the first record if there are several")
    ] = ABSENT
    spf_problems: Annotated[
        Texts | Absent, doc("problems of the SPF record; absent if there are none")
    ] = ABSENT
    dmarc_record: Annotated[str | Absent, doc("present if hasDmarc is true")] = ABSENT
    dmarc_domain: Annotated[
        str | Absent, doc("domain where the record was found (RFC 9989 tree walk)")
    ] = ABSENT
    dmarc_problems: Annotated[
        Texts | Absent, doc("problems of the DMARC record; absent if there are none")
    ] = ABSENT
    spf_ignored: Annotated[
        Texts | Absent, doc("malformed TXT records that receivers do not accept as SPF")
    ] = ABSENT
    dmarc_ignored: Annotated[
        Texts | Absent, doc("malformed TXT records that receivers do not accept as DMARC")
    ] = ABSENT


class MxUndetermined(Shape):
    """MX, SPF or DMARC could not be determined. `partial` contains the other results."""

    error: str
    partial: Annotated[dict[str, Any], partial_schema(MxCheck, "domain")]


def render_mx_check(check: check_mx.MxCheck) -> MxCheck:
    """Render the complete result."""
    return MxCheck(check.domain, **_mx(check), **_spf(check), **_dmarc(check))


def render_mx_undetermined(check: check_mx.MxCheck) -> MxUndetermined:
    """Render the error for a check that is partly undetermined, with the determined results."""
    names = " and ".join(filter(None, (", ".join(check.undetermined[:-1]), check.undetermined[-1])))
    parts = {"MX": _mx, "SPF": _spf, "DMARC": _dmarc}
    known: dict[str, Any] = {"domain": check.domain}
    for name, fields_of in parts.items():
        if name not in check.undetermined:
            known |= fields_of(check)
    error = (
        f"{names} of {check.domain} could not be determined: DNS returned no usable answer;"
        " try again in a minute"
    )
    return MxUndetermined(error, with_wire_names(MxCheck, known))


def _mx(check: check_mx.MxCheck) -> dict[str, Any]:
    return {
        "has_mx": bool(check.mx.hosts),
        "records": render_hosts(check.mx.hosts),
        "null_mx": check.mx.is_null_mx,
        "implicit_mx": check.mx.is_implicit_mx,
        "exists": check.exists,
        "note": _note(check),
    }


def _note(check: check_mx.MxCheck) -> str | Absent:
    """Return the explanation for a domain that accepts no mail or does not exist."""
    if not check.exists:
        return f"{check.domain} does not exist in DNS."
    if check.mx.is_null_mx:
        return f"{check.domain} publishes a null MX record: it accepts no mail (RFC 7505)."
    return ABSENT


def render_hosts(hosts: Iterable[verdicts.MailHost]) -> tuple[MailHost, ...]:
    """Render the MX hosts. ``problem`` explains an empty ``ip`` or why mail may not arrive."""
    return tuple(
        shape_from(MailHost, host, priority=host.preference, ip=tuple(map(str, host.addresses)))
        for host in hosts
    )


def _spf(check: check_mx.MxCheck) -> dict[str, Any]:
    record, problems = check.spf.record, tuple(problem_texts(check.spf.findings))
    if not check.exists:
        problems = ()
    return {
        "has_spf": record is not None,
        "spf_record": ABSENT if record is None else record,
        "spf_problems": problems or ABSENT,
        "spf_ignored": check.spf.broken_texts or ABSENT,
    }


def _dmarc(check: check_mx.MxCheck) -> dict[str, Any]:
    dmarc = check.dmarc
    problems = tuple(problem_texts(dmarc.findings)) if check.exists else ()
    fields = {
        "has_dmarc": False,
        "dmarc_problems": problems or ABSENT,
        "dmarc_ignored": dmarc.broken_texts or ABSENT,
    }
    if dmarc.presence is not Presence.FOUND or dmarc.record is None:
        return fields
    found = {"dmarc_record": dmarc.record.text, "dmarc_domain": dmarc.found_at}
    return fields | found | {"has_dmarc": True}
