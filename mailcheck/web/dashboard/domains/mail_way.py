"""The way of a mail to a domain, host by host: what its page draws of MX and TLS."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mailcheck.checks.hosts.starttls import ProbeOutcome, StarttlsProbe, StarttlsVerdict
from mailcheck.web.dashboard.domains.view import HOST_PROBLEMS

Step = tuple[str, str]
"""Level and words."""

LEVELS = ("bad", "warn", "unknown", "", "good")
"""What counts for the line to a host: the worst of its steps."""


class WayHost(Struct, frozen=True):
    """A mail host on the way; ``priority`` is nothing for a domain that is its own mail host."""

    exchange: str
    priority: int | None
    addresses: tuple[str, ...]
    steps: tuple[Step, ...]

    @property
    def level(self) -> str:
        """Say how the way to it is to be read."""
        return min((level for level, _ in self.steps if level), key=LEVELS.index, default="")


class MailWay(Struct, frozen=True):
    """All hosts in the order in which senders try them, and the domain's word on encryption."""

    hosts: tuple[WayHost, ...]
    policy: Step


def draw_way(report: Mapping[str, Any], starttls: StarttlsVerdict) -> MailWay:
    """Put together what the report of a domain says of its hosts, and what they showed."""
    probes = {one.exchange: one for one in starttls.probes}
    pinned = {one["exchange"]: one for one in report["dane"]["hosts"] if one["records"]}
    hosts = tuple(
        WayHost(
            one["exchange"],
            one["priority"],
            tuple(one["ip"]),
            _steps(one, probes.get(one["exchange"]), pinned.get(one["exchange"])),
        )
        for one in report["mx"]["records"]
    )
    if report["mx"]["implicitMx"]:
        own = report["domain"]
        hosts = (WayHost(own, None, (), _encryption(probes.get(own))),)
    return MailWay(hosts, _policy(report["mtaSts"]))


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
        return (("unknown", "TLS: not looked at"),)
    if probe.outcome is ProbeOutcome.NOT_OFFERED:
        return (("bad", "no STARTTLS"),)
    if probe.outcome is not ProbeOutcome.ENCRYPTED:
        return (("unknown", f"TLS: {probe.outcome.value}"),)
    is_good = probe.is_certificate_trusted and probe.is_name_matching
    certificate = (
        ("good", "certificate valid")
        if is_good
        else ("warn", "certificate of another name")
        if probe.is_certificate_trusted
        else ("warn", "certificate not trusted")
    )
    return (("good", probe.tls_version), certificate)


def _policy(found: Mapping[str, Any]) -> Step:
    policy = found["policy"]
    if found["presence"] == "undetermined":
        return "unknown", "could not be determined"
    if policy is None or not policy["valid"]:
        return "", "none" if found["record"] is None else "not valid"
    return "good" if policy["mode"] == "enforce" else "", f"mode {policy['mode']}"
