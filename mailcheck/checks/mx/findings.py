"""The words for what is wrong with MX records."""

from collections.abc import Sequence

from mailcheck.checks.findings import Finding, RecordToPublish, Severity, undetermined
from mailcheck.checks.mx.verdicts import HostProblem, MailHost


def no_such_domain(domain: str) -> Finding:
    """Say that the name does not exist at all."""
    return Finding(
        "mx.no-such-domain",
        Severity.ERROR,
        f"The domain {domain} does not exist in DNS, so it neither receives mail nor is it"
        " accepted as a sender.",
        "Check the spelling; register the domain, or publish records for the name.",
    )


def no_mx(domain: str) -> Finding:
    """Say that mail for the domain has no destination."""
    return Finding(
        "mx.absent",
        Severity.ERROR,
        f"{domain} has neither an MX record nor an address: replies and bounces cannot be"
        " delivered, and many receivers refuse senders that cannot be answered.",
        "Publish an MX record that names your mail server.",
        RecordToPublish(domain, "MX", f"10 mail.{domain}."),
    )


def implicit_mx(domain: str) -> Finding:
    """Say that mail goes to the domain's own address for want of an MX."""
    return Finding(
        "mx.implicit",
        Severity.WARNING,
        f"{domain} has no MX record, so mail is sent to its web address; it arrives only if a"
        " mail server runs there.",
        "Publish an MX record that names your mail server, this one if mail is received there.",
        RecordToPublish(domain, "MX", f"10 {domain}."),
    )


def null_mx(domain: str) -> Finding:
    """Say that the domain declares to receive no mail."""
    return Finding(
        "mx.null",
        Severity.NOTE,
        f"{domain} declares that it receives no mail (null MX, RFC 7505); mail sent from it"
        " cannot be answered.",
        "Keep it if the domain is not used for mail; otherwise publish an MX record that names"
        " your mail server.",
    )


def null_mx_among_others(domain: str, host: MailHost) -> Finding:
    """Say that the null MX contradicts the other records."""
    return Finding(
        "mx.null-among-others",
        Severity.ERROR,
        f'{domain} says at once that it receives no mail (an MX of ".") and where to send it:'
        " some senders will give up.",
        'Remove the MX record "0 ." and keep the others.',
        RecordToPublish(domain, "MX", f"{host.preference} {host.exchange}."),
    )


def too_many_hosts(domain: str, count: int, limit: int) -> Finding:
    """Say that the rest of the hosts was not looked at."""
    return Finding(
        "mx.too-many",
        Severity.NOTE,
        f"{domain} names {count} mail hosts; only the first {limit} were looked up.",
        "Keep the few hosts that really receive mail.",
    )


def describe(domain: str, host: MailHost, hosts: Sequence[MailHost]) -> Finding:
    """Say what is wrong with one host; worse when no other host takes the mail."""
    is_covered = any(other.is_usable for other in hosts)
    severity = Severity.WARNING if is_covered else Severity.ERROR
    match host.problem:
        case HostProblem.DEAD:
            return _dead(host, severity)
        case HostProblem.NOT_PUBLIC:
            return _not_public(host, severity)
        case HostProblem.ADDRESS_LITERAL:
            return _address_literal(domain, host, severity)
        case HostProblem.PARTLY_PUBLIC:
            return _partly_public(host)
        case HostProblem.ALIAS:
            return _alias(domain, host)
        case _:
            return undetermined("mx", [host.exchange])


def _dead(host: MailHost, severity: Severity) -> Finding:
    return Finding(
        "mx.dead-host",
        severity,
        f"The mail host {host.exchange} has no address, so mail sent to it waits or bounces.",
        f"Publish an address for {host.exchange}, or remove the MX record that names it.",
    )


def _not_public(host: MailHost, severity: Severity) -> Finding:
    return Finding(
        "mx.not-public",
        severity,
        f"The mail host {host.exchange} has only addresses that nobody outside can reach"
        f" ({_join(host)}).",
        f"Publish the public address of {host.exchange}, or remove the MX record that names it.",
    )


def _address_literal(domain: str, host: MailHost, severity: Severity) -> Finding:
    return Finding(
        "mx.address-literal",
        severity,
        f"The MX record names the IP address {host.exchange}, but only host names are allowed"
        " there; senders cannot use it.",
        f"Give the address a name such as mail.{domain} and let the MX name that.",
        RecordToPublish(domain, "MX", f"{host.preference} mail.{domain}."),
    )


def _partly_public(host: MailHost) -> Finding:
    return Finding(
        "mx.partly-public",
        Severity.WARNING,
        f"Some addresses of the mail host {host.exchange} cannot be reached from outside"
        f" ({_join(host)}), so mail is delayed or lost when a sender picks one of them.",
        f"Remove the private addresses of {host.exchange} from the public DNS.",
    )


def _alias(domain: str, host: MailHost) -> Finding:
    target = host.host.canonical_name
    return Finding(
        "mx.alias",
        Severity.WARNING,
        f"The MX record names {host.exchange}, which is an alias (CNAME) of {target}; some"
        " senders refuse that.",
        "Let the MX name the real host.",
        RecordToPublish(domain, "MX", f"{host.preference} {target}."),
    )


def _join(host: MailHost) -> str:
    return ", ".join(str(address) for address in host.addresses)
