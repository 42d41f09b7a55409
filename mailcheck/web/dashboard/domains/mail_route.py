"""The way of mail to a domain: its mail hosts with the results of their probes."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mailcheck.checks.hosts.starttls import (
    UNDETERMINED,
    ProbeOutcome,
    StarttlsProbe,
    StarttlsVerdict,
)
from mailcheck.web.dashboard.domains.view import HOST_PROBLEMS

Step = tuple[str, str]
"""Level and label."""

LEVELS = ("bad", "warn", "unknown", "", "good")
"""Levels from worst to best. The worst step of a host determines its level."""


class RouteHost(Struct, frozen=True):
    """A mail host on the route. ``priority`` is ``None`` for an implicit MX."""

    exchange: str
    priority: int | None
    addresses: tuple[str, ...]
    steps: tuple[Step, ...]

    @property
    def level(self) -> str:
        """The level of the worst step."""
        return min((level for level, _ in self.steps if level), key=LEVELS.index, default="")


class MailRoute(Struct, frozen=True):
    """The mail hosts in the order in which senders try them, and the MTA-STS policy."""

    hosts: tuple[RouteHost, ...]
    policy: Step


def describe_route(report: Mapping[str, Any], starttls: StarttlsVerdict) -> MailRoute:
    """Combine the mail hosts of a domain report with the results of their probes."""
    probes = {probe.exchange: probe for probe in starttls.probes}
    pinned = {host["exchange"]: host for host in report["dane"]["hosts"] if host["records"]}
    hosts = tuple(
        RouteHost(
            record["exchange"],
            record["priority"],
            tuple(record["ip"]),
            _steps(record, probes.get(record["exchange"]), pinned.get(record["exchange"])),
        )
        for record in report["mx"]["records"]
    )
    if report["mx"]["implicitMx"]:
        own = report["domain"]
        hosts = (RouteHost(own, None, (), _encryption(probes.get(own))),)
    return MailRoute(hosts, _policy(report["mtaSts"]))


def _steps(
    host: Mapping[str, Any], probe: StarttlsProbe | None, pinned: Mapping[str, Any] | None
) -> tuple[Step, ...]:
    problem = host.get("problem")
    steps: list[Step] = []
    if problem is not None:
        level = "unknown" if problem == "undetermined" else "bad"
        steps.append((level, HOST_PROBLEMS.get(problem, problem)))
    if host["ip"]:
        steps += _encryption(probe)
    if pinned is not None:
        secure = {True: ("good", "DANE"), False: ("warn", "DANE, not signed")}
        steps.append(secure.get(pinned["secure"], ("unknown", "DANE, signature unknown")))
    return tuple(steps)


def _encryption(probe: StarttlsProbe | None) -> tuple[Step, ...]:
    if probe is None:
        return (("unknown", "TLS: not checked"),)
    if probe.outcome is ProbeOutcome.NOT_OFFERED:
        return (("bad", "no STARTTLS"),)
    if probe.outcome is ProbeOutcome.HANDSHAKE_FAILED:
        return (("bad", "TLS handshake failed"),)
    if probe.outcome is not ProbeOutcome.ENCRYPTED:
        return (("unknown", f"TLS: {UNDETERMINED[probe.outcome]}"),)
    certificate = ("good", "certificate valid")
    if not probe.is_certificate_trusted:
        certificate = ("warn", "certificate not trusted")
    elif not probe.is_name_matching:
        certificate = ("warn", "certificate for another name")
    return (("good", probe.tls_version), certificate)


def _policy(found: Mapping[str, Any]) -> Step:
    policy = found["policy"]
    if found["presence"] == "undetermined":
        return "unknown", "could not be determined"
    if policy is None or not policy["valid"]:
        return "", "none" if found["record"] is None else "not valid"
    return "good" if policy["mode"] == "enforce" else "", f"mode {policy['mode']}"
