"""Everything about a domain as JSON (`GET /tools/domain`, DECISIONS.md section 2)."""

from typing import Any

from mailcheck.checks.dkim.verdicts import DkimKey
from mailcheck.checks.lookups import Presence
from mailcheck.checks.spf.verdicts import SpfNode
from mailcheck.checks.transport_policy.dane import HostTlsa
from mailcheck.core.instants import format_instant
from mailcheck.operations.domains.describe_domain import DomainReport
from mailcheck.wire.domains.findings import render_findings
from mailcheck.wire.domains.mx import render_host
from mailcheck.wire.json_values import JsonObject


def render_domain_report(report: DomainReport) -> JsonObject:
    """Give each mechanism with its findings; ``presence`` tells absent from undetermined."""
    shown: dict[str, dict[str, Any]] = {
        "mx": _mx(report),
        "spf": _spf(report),
        "dkim": _dkim(report),
        "dmarc": _dmarc(report),
        "mtaSts": _mta_sts(report),
        "tlsRpt": _tls_rpt(report),
        "dane": _dane(report),
        "dnssec": {"status": report.records.dnssec.status.value},
    }
    return {
        "domain": report.domain,
        "checkedAt": format_instant(report.checked_at),
        **{
            name: {**fields, "findings": render_findings(report.findings[name])}
            for name, fields in shown.items()
        },
    }


def _mx(report: DomainReport) -> dict[str, Any]:
    mx = report.records.mx
    return {
        "presence": mx.presence.value,
        "records": [render_host(host) for host in mx.hosts],
        "nullMx": mx.is_null_mx,
        "implicitMx": mx.is_implicit_mx,
    }


def _spf(report: DomainReport) -> dict[str, Any]:
    spf = report.records.spf
    return {
        "presence": spf.presence.value,
        "records": list(spf.records),
        "lookups": spf.lookup_count,
        "voidLookups": spf.void_count,
        "complete": spf.is_complete and not spf.is_truncated,
        "all": None if spf.all_qualifier is None else spf.all_qualifier.value,
        "tree": None if spf.tree is None else _spf_node(spf.tree),
    }


def _spf_node(node: SpfNode) -> JsonObject:
    return {
        "domain": node.domain,
        "term": node.term or None,
        "record": None if node.record is None else node.record.text,
        "problem": None if node.problem is None else node.problem.value,
        "lookups": node.lookups,
        "voidTerms": list(node.voids),
        "children": [_spf_node(child) for child in node.children],
    }


def _dkim(report: DomainReport) -> dict[str, Any]:
    dkim = report.records.dkim
    return {
        "presence": dkim.presence.value,
        "hidden": dkim.is_hidden,
        "keys": [_key(key) for key in dkim.keys],
        "tried": list(dkim.tried),
    }


def _key(key: DkimKey) -> JsonObject:
    return {
        "selector": key.selector,
        "name": key.record_name,
        "type": key.record.key_type,
        "bits": key.record.bits,
        "usable": key.is_usable,
        "testing": key.record.is_testing,
        "revoked": key.record.is_revoked,
        "record": key.record.text,
        "aliasOf": key.alias_of or None,
    }


def _dmarc(report: DomainReport) -> dict[str, Any]:
    dmarc = report.records.dmarc
    record = dmarc.record
    return {
        "presence": dmarc.presence.value,
        "foundAt": dmarc.found_at,
        "record": None if record is None else record.text,
        "policy": None if dmarc.policy is None else dmarc.policy.value,
        "policyTag": dmarc.policy_tag or None,
        "testing": record is not None and record.is_testing,
        "organizationalDomain": dmarc.organizational_domain,
        "rua": [] if record is None else [uri.text for uri in record.rua],
        "reportAuthorizations": [
            {"uri": one.uri.text, "name": one.record_name, "presence": one.presence.value}
            for one in dmarc.authorizations
        ],
    }


def _mta_sts(report: DomainReport) -> dict[str, Any]:
    verdict = report.mta_sts
    policy = verdict.policy
    shown: dict[str, Any] = {
        "presence": verdict.record.presence.value,
        "record": verdict.record.text or None,
        "policy": None,
    }
    if policy is not None:
        shown["policy"] = {
            "mode": None if policy.mode is None else policy.mode.value,
            "maxAge": policy.max_age,
            "mx": list(policy.mx_patterns),
            "valid": policy.is_valid,
        }
    return shown


def _tls_rpt(report: DomainReport) -> dict[str, Any]:
    found = report.records.tls_rpt
    return {
        "presence": found.presence.value,
        "record": found.text or None,
        "rua": list(found.rua),
    }


def _dane(report: DomainReport) -> dict[str, Any]:
    dane = report.records.dane
    return {
        "presence": _dane_presence(dane.hosts).value,
        "protecting": dane.is_protecting,
        "hosts": [
            {
                "exchange": host.exchange,
                "name": host.record_name,
                "presence": host.presence.value,
                "records": list(host.records),
                "secure": host.is_secure,
            }
            for host in dane.hosts
        ],
    }


def _dane_presence(hosts: tuple[HostTlsa, ...]) -> Presence:
    found = {host.presence for host in hosts}
    for presence in (Presence.FOUND, Presence.UNDETERMINED):
        if presence in found:
            return presence
    return Presence.ABSENT
