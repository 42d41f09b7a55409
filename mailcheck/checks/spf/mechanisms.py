"""Reading one term of an SPF record (RFC 7208 5, 6)."""

import re
from ipaddress import IPv4Network, IPv6Network, ip_address

from mailcheck.checks.spf.macros import explain_bad_domain_spec, has_macros, is_macro_string
from mailcheck.checks.spf.terms import (
    WHOLE_ADDRESSES,
    Mechanism,
    MechanismName,
    Modifier,
    Qualifier,
    TermProblem,
)

MAX_SHOWN = 80  # characters of a term that are repeated in a problem

_MECHANISM = re.compile(r"(?P<qualifier>[+?~-]?)(?P<name>[A-Za-z][A-Za-z0-9_.-]*)(?P<rest>.*)")
_MODIFIER = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9_.-]*)=(?P<value>.*)")
# dual-cidr-length = [ ip4-cidr-length ] [ "/" ip6-cidr-length ], without leading zeros
_LENGTH = r"0|[1-9][0-9]{0,2}"
_DUAL_CIDR = re.compile(rf"(?:/(?P<v4>{_LENGTH}))?(?://(?P<v6>{_LENGTH}))?", re.ASCII)

_NAMES = {name.value: name for name in MechanismName}

# What people write, and what they mean.
_MISSPELT = {
    "ip": "ip4",
    "ipv4": "ip4",
    "ip4v": "ip4",
    "ipv6": "ip6",
    "includes": "include",
    "inlcude": "include",
    "incude": "include",
    "a-record": "a",
    "exist": "exists",
}
_STRAY = ";,.:\"'"  # found at the end of terms that were copied from a sentence


def parse_term(term: str) -> Mechanism | Modifier | TermProblem:
    """Read one term; whatever it is, it becomes a value."""
    modifier = _MODIFIER.fullmatch(term)
    if modifier is not None:
        return _read_modifier(term, modifier["name"].lower(), modifier["value"])
    try:
        return _read_mechanism(term)
    except ValueError as error:
        return TermProblem(term[:MAX_SHOWN], str(error), _suggest(term))


def _read_modifier(term: str, name: str, value: str) -> Modifier | TermProblem:
    problem = None
    if name in ("redirect", "exp"):
        problem = explain_bad_domain_spec(value)
    elif not is_macro_string(value):
        problem = "has a character or a macro that is not allowed"
    if problem is not None:
        return TermProblem(term[:MAX_SHOWN], problem, _suggest(term) if name in _NAMES else "")
    if name in _NAMES or name in _MISSPELT:
        reason = 'is ignored by receivers: it needs ":" in place of "="'
        return TermProblem(term[:MAX_SHOWN], reason, _suggest(term), is_error=False)
    if name == "v":
        return TermProblem(
            term[:MAX_SHOWN], "stands in the middle of the record and is ignored", is_error=False
        )
    return Modifier(name, _as_asked(value) if name == "redirect" else value)


def _read_mechanism(term: str) -> Mechanism:
    match = _MECHANISM.fullmatch(term)
    if match is None:
        raise ValueError("is not a term of SPF")
    name = _NAMES.get(match["name"].lower())
    if name is None:
        raise ValueError("is not a mechanism of SPF")
    qualifier = Qualifier(match["qualifier"] or "+")
    rest = match["rest"]
    if name is MechanismName.ALL:
        if rest:
            raise ValueError("has something behind its name")
        return Mechanism(term, qualifier, name)
    if name in (MechanismName.IP4, MechanismName.IP6):
        return Mechanism(term, qualifier, name, network=_read_network(name, rest))
    takes_lengths = name in (MechanismName.A, MechanismName.MX)
    spec, lengths = _split_lengths(rest) if takes_lengths else (rest, WHOLE_ADDRESSES)
    return Mechanism(term, qualifier, name, _read_target(name, spec), lengths=lengths)


def _read_network(name: MechanismName, rest: str) -> IPv4Network | IPv6Network:
    network, slash, length = rest[1:].partition("/")
    if not rest.startswith(":") or not network:
        raise ValueError("has no address")
    if slash and re.fullmatch(_LENGTH, length, re.ASCII) is None:
        raise ValueError("has no valid length behind the slash")
    family = IPv4Network if name is MechanismName.IP4 else IPv6Network
    try:
        return family(rest[1:], strict=False)
    except ValueError:
        raise ValueError(
            f"has no valid {'IPv4' if family is IPv4Network else 'IPv6'} address"
        ) from None


def _read_target(name: MechanismName, spec: str) -> str:
    """Give the domain-spec of a, mx, ptr, include or exists; empty for the domain itself."""
    if not spec and name not in (MechanismName.INCLUDE, MechanismName.EXISTS):
        return ""
    if spec and not spec.startswith(":"):
        raise ValueError("is not a mechanism of SPF")
    problem = explain_bad_domain_spec(spec[1:])
    if problem is not None:
        raise ValueError(problem)
    return _as_asked(spec[1:])


def _as_asked(domain_spec: str) -> str:
    """Write a name as DNS is asked for it; the case of macros has a meaning (RFC 7208 7.3)."""
    return domain_spec if has_macros(domain_spec) else domain_spec.lower().removesuffix(".")


def _split_lengths(rest: str) -> tuple[str, tuple[int, int]]:
    """Cut ``/24//64`` off the end, and give it as numbers.

    :raises ValueError: the lengths are none.
    """
    start = len(rest.rstrip("/0123456789"))
    slash = rest.find("/", start)
    if slash < 0:
        return rest, WHOLE_ADDRESSES
    match = _DUAL_CIDR.fullmatch(rest[slash:])
    if match is not None:
        lengths = int(match["v4"] or 32), int(match["v6"] or 128)
        if lengths[0] <= 32 and lengths[1] <= 128:
            return rest[:slash], lengths
    raise ValueError("has no valid length behind the slash")


def _suggest(term: str) -> str:
    """Give the term that was probably meant, or nothing."""
    candidate = term.strip(_STRAY)
    match = _MECHANISM.fullmatch(candidate)
    if match is not None:
        name, rest = match["name"].lower(), match["rest"]
        rest = ":" + rest[1:] if rest.startswith("=") else rest
        name = _by_address(rest[1:]) or _MISSPELT.get(name, name)
        candidate = f"{match['qualifier']}{name}{rest}"
    try:
        _read_mechanism(candidate)
    except ValueError:
        return ""
    return candidate


def _by_address(text: str) -> str | None:
    """Name the mechanism that takes this address: ``a:192.0.2.1`` is meant as ``ip4:``."""
    try:
        return f"ip{ip_address(text.partition('/')[0]).version}"
    except ValueError:
        return None
