"""The self-test of a blocklist (RFC 5782 5): its test entries and a target that is not listed."""

from enum import Enum
from ipaddress import IPv4Address, IPv6Address, ip_address

from msgspec import Struct

from mailcheck.checks.dns_answers import Answers, DnsAnswer, look_up
from mailcheck.checks.dnsbl.catalogue import Blocklist, TargetKind
from mailcheck.checks.dnsbl.listings import (
    Target,
    UnknownReason,
    interpret_answer,
    query_name,
    target_address,
    target_domain,
)


class HealthStatus(Enum):
    """The result of the self-test."""

    HEALTHY = "healthy"
    UNHEALTHY = "sick"
    """Its answers cannot be trusted."""
    UNREACHABLE = "unreachable"
    """The list does not answer. Its health is unknown until it answers a later query."""


class ZoneHealth(Struct, frozen=True):
    """The health of a list for one kind of target; ``reason`` is empty if it is healthy."""

    kind: TargetKind
    status: HealthStatus
    reason: str = ""


def evaluate_health(blocklist: Blocklist, answers: Answers, nonce: int) -> tuple[ZoneHealth, ...]:
    """Evaluate a list by its test entries and by a random target that is on no list.

    :param nonce: a random number of 24 bits, so that the target is in no cache and on no list.
    """
    return tuple(_evaluate_kind(blocklist, kind, answers, nonce) for kind in blocklist.query_zones)


def _evaluate_kind(
    blocklist: Blocklist, kind: TargetKind, answers: Answers, nonce: int
) -> ZoneHealth:
    listed, unlisted = (
        _ask(blocklist, _test_target(kind, point), answers)
        for point in (blocklist.test_listed, blocklist.test_unlisted)
    )
    stranger = _ask(blocklist, _random_target(kind, nonce), answers)
    for answer in (unlisted, stranger):
        if answer is not None and answer.records:
            return ZoneHealth(kind, HealthStatus.UNHEALTHY, _explain_answer(blocklist, answer))
    if listed is not None and listed.records:
        reason = interpret_answer(blocklist, listed).unknown_reason
        if reason in (UnknownReason.REFUSED_BY_LIST, UnknownReason.REWRITTEN):
            return ZoneHealth(kind, HealthStatus.UNHEALTHY, _explain_answer(blocklist, listed))
    asked = [answer for answer in (listed, unlisted, stranger) if answer is not None]
    if not all(answer.status.is_determined for answer in asked):
        return ZoneHealth(kind, HealthStatus.UNREACHABLE, "It does not answer.")
    if listed is not None and not listed.records:
        return ZoneHealth(
            kind, HealthStatus.UNHEALTHY, "Its own test entry is missing: it is empty or abandoned."
        )
    return ZoneHealth(kind, HealthStatus.HEALTHY)


def _explain_answer(blocklist: Blocklist, answer: DnsAnswer) -> str:
    reason = interpret_answer(blocklist, answer).unknown_reason
    if reason is UnknownReason.REFUSED_BY_LIST:
        return "It refuses to answer this resolver."
    if reason is UnknownReason.REWRITTEN:
        return "Its answers are not from a blocklist: it has expired, or the resolver rewrites."
    return "It lists a random target: it answers everything."


def _ask(blocklist: Blocklist, target: Target | None, answers: Answers) -> DnsAnswer | None:
    return None if target is None else look_up(answers, query_name(blocklist, target), "A")


def _test_target(kind: TargetKind, point: str) -> Target | None:
    if not point:
        return None
    if kind is TargetKind.DOMAIN:
        return target_domain(point)
    address = ip_address(point)
    if kind is TargetKind.IPV6 and isinstance(address, IPv4Address):
        address = IPv6Address(0xFFFF << 32 | int(address))  # ::FFFF:7F00:2, RFC 5782 5
    return target_address(address)


def _random_target(kind: TargetKind, nonce: int) -> Target:
    number = 127 << 24 | 1 << 23 | nonce % (1 << 23)  # 127.128.0.0/9, which no host uses
    if kind is TargetKind.DOMAIN:
        return target_domain(f"mailcheck-{nonce:06x}.invalid")
    if kind is TargetKind.IPV6:
        return target_address(IPv6Address(0xFFFF << 32 | number))
    return target_address(IPv4Address(number))
