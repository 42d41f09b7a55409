"""The MX check as JSON (SPEC.md 2.1, DECISIONS.md section 2)."""

from typing import Any

from mailcheck.checks.lookups import Presence
from mailcheck.checks.mx.verdicts import MailHost
from mailcheck.operations.domains.check_mx import MxCheck
from mailcheck.wire.domains.findings import problem_texts
from mailcheck.wire.json_values import JsonObject


def render_mx_check(check: MxCheck) -> JsonObject:
    """Give the whole result; everything in it is known."""
    return {"domain": check.domain, **_mx(check), **_spf(check), **_dmarc(check)}


def render_mx_undetermined(check: MxCheck) -> JsonObject:
    """Give the error for a check of which something is not known, and what is known beside."""
    names = " and ".join(filter(None, (", ".join(check.undetermined[:-1]), check.undetermined[-1])))
    parts = {"MX": _mx, "SPF": _spf, "DMARC": _dmarc}
    partial: dict[str, Any] = {"domain": check.domain}
    for name, render in parts.items():
        if name not in check.undetermined:
            partial |= render(check)
    error = (
        f"{names} of {check.domain} could not be determined: the name servers gave no answer;"
        " try again in a minute"
    )
    return {"error": error, "partial": partial}


def _mx(check: MxCheck) -> dict[str, Any]:
    return {
        "hasMx": bool(check.mx.hosts),
        "records": [render_host(host) for host in check.mx.hosts],
        "nullMx": check.mx.is_null_mx,
        "implicitMx": check.mx.is_implicit_mx,
    }


def render_host(host: MailHost) -> JsonObject:
    """Give one MX record; ``problem`` says why ``ip`` is empty or mail may not arrive."""
    shown: dict[str, Any] = {
        "exchange": host.exchange,
        "priority": host.preference,
        "ip": [str(address) for address in host.addresses],
    }
    if host.problem is not None:
        shown["problem"] = host.problem.value
    return shown


def _spf(check: MxCheck) -> dict[str, Any]:
    has_spf = check.spf.record is not None
    shown: dict[str, Any] = {"hasSpf": has_spf}
    if has_spf:
        shown["spfRecord"] = check.spf.record
    problems = problem_texts(check.spf.findings)
    return {**shown, "spfProblems": problems} if problems else shown


def _dmarc(check: MxCheck) -> dict[str, Any]:
    dmarc = check.dmarc
    if dmarc.presence is not Presence.FOUND or dmarc.record is None:
        return {"hasDmarc": False}
    return {"hasDmarc": True, "dmarcRecord": dmarc.record.text, "dmarcDomain": dmarc.found_at}
