"""Domain names as a user sends them: what is accepted, and what to send instead.

The result is always lower-case A-labels (RFC 5890) without a trailing dot.
"""

import re

import idna

from mailcheck.core.errors import InvalidParameter
from mailcheck.core.network_addresses import (
    DOCUMENTATION,
    IpAddress,
    parse_ip_address,
    why_not_public,
)

MAX_NAME = 253  # characters without the trailing dot, RFC 1035 2.3.4
MAX_LABEL = 63  # RFC 1035 2.3.4
MAX_ECHO = 60  # of what was sent, in an error
MAX_INPUT = 1024  # IDNA mapping is not run on more; no name is that long in any script

MAX_SELECTORS = 10
"""Maximum number of DKIM selectors that a request may name; each is a query."""

MAX_ADDRESSES = 4
"""Maximum number of addresses of a domain that are checked: each costs 20 queries."""

SPECIAL_USE = frozenset(
    {
        "alt",  # RFC 9476
        "arpa",  # RFC 3172, RFC 8375
        "internal",  # ICANN board resolution 2024.07.29.06
        "invalid",  # RFC 6761 6.4
        "local",  # RFC 6762
        "localhost",  # RFC 6761 6.3
        "onion",  # RFC 7686
        "test",  # RFC 6761 6.2
    }
)

RFC_5782_TEST_ADDRESSES = ("127.0.0.1", "127.0.0.2")  # 5: never and always on a list

# An underscore is no letter of a host name, but of names that mail software
# asks for (_spf, _dmarc), so it is let through.
_ASCII_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?", re.ASCII)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://([^/?#@]*@)?(?P<host>[^/:?#]*)")

_PATH = re.compile(r"(?P<host>[^/:?#\s<>]+\.[^/:?#\s<>]+)(?::[0-9]+)?/(?![0-9]+$)")
_END_OF_HOST = re.compile(r"[/:?#>\s]")


def parse_domain(text: str, *, name: str = "domain", allow_special_use: bool = False) -> str:
    """Read a domain name that may be in any script.

    :param name: the parameter it came in, for the error.
    :param allow_special_use: accept ``.test``, ``.local`` and their like too.
    :raises InvalidParameter: says what to send instead.
    """
    text = text.strip()
    _refuse_what_is_no_domain(text, name)
    try:
        domain = _to_a_labels(text)
    except ValueError as error:
        raise _refusal(name, text, f"is not a domain name: {error}") from None
    labels = domain.split(".")
    if labels[-1] in SPECIAL_USE and not allow_special_use:
        raise _refusal(
            name,
            text,
            f"ends in .{labels[-1]}, which exists in private networks only;"
            " send a domain of the public DNS",
        )
    if len(labels) == 1:
        raise _refusal(
            name, text, "is a single label; send the whole domain name, like example.com"
        )
    if labels[-1].isdigit():
        raise _refusal(name, text, "ends in a number, which no domain does")
    return domain


def domain_meant(text: str) -> str:
    """Give the domain that a URL or a mail address names; any other text as it is.

    For what people paste: ``http://shop.example/x``, ``shop.example/x``,
    ``Ann <ann@shop.example>``. It is not read yet: `parse_domain` says what is wrong with it.
    """
    text = text.strip()
    url = _URL.match(text)
    if url is not None:
        return url["host"] or text
    _, at, domain = text.rpartition("@")
    if at:
        return _END_OF_HOST.split(domain, maxsplit=1)[0] or text
    path = _PATH.match(text)
    return text if path is None else path["host"]


def parse_blocklist_query(
    text: str,
    *,
    name: str = "query",
    allow_special_use: bool = False,
    allow_private: bool = False,
) -> IpAddress | str:
    """Read what blocklists are to be asked about: an IP address or a domain name.

    Addresses that no list can know (private, loopback, multicast, ...) are
    refused. The test entries of RFC 5782 and the addresses reserved for
    documentation are let through: people try a tool with them, and the lists
    answer them truthfully.

    :raises InvalidParameter: says what to send instead.
    """
    stripped = text.strip()
    address = parse_ip_address(stripped)
    if address is None:
        if "/" in stripped and parse_ip_address(stripped.partition("/")[0]) is not None:
            raise _refusal(name, stripped, "is a network; send one address of it")
        return parse_domain(text, name=name, allow_special_use=allow_special_use)
    reason = why_not_public(address)
    is_askable = reason in (None, DOCUMENTATION) or str(address) in RFC_5782_TEST_ADDRESSES
    if not is_askable and not allow_private:
        raise _refusal(
            name,
            stripped,
            f"is {reason}: blocklists know public addresses only;"
            " send the address that your mail leaves from",
        )
    return address


def parse_host_address(text: str, *, name: str = "ip", allow_private: bool = False) -> IpAddress:
    """Read the public address of a host that sends mail.

    :raises InvalidParameter: it is no address, or not a public one.
    """
    query = parse_ip_address(text.strip())
    if query is None:
        raise _refusal(name, text.strip(), "is not an IP address, like 192.0.2.1 or 2001:db8::1")
    parse_blocklist_query(text, name=name, allow_private=allow_private)
    return query


def parse_selector(text: str, *, name: str = "selector") -> str:
    """Read a DKIM selector: labels joined by dots, lower case (RFC 6376 3.1).

    :raises InvalidParameter: says what to send instead.
    """
    selector = text.strip().lower()
    if "._domainkey" in selector:
        short = selector.partition("._domainkey")[0]
        raise _refusal(name, selector, f"is a record's name; send the selector alone: {short}")
    if not selector.isascii() or not all(map(_is_label, selector.split("."))):
        raise _refusal(
            name, selector, "is not a selector; send what s= says in a DKIM-Signature field"
        )
    return selector


def _is_label(text: str) -> bool:
    return len(text) <= MAX_LABEL and _ASCII_LABEL.fullmatch(text) is not None


def is_special_use(domain: str) -> bool:
    """Tell whether the name belongs to a domain that the public DNS does not serve."""
    return domain.rpartition(".")[2] in SPECIAL_USE


def is_within(domain: str, parent: str) -> bool:
    """Tell whether ``domain`` is ``parent`` or a name below it; both in A-labels."""
    return domain == parent or domain.endswith("." + parent)


def _refuse_what_is_no_domain(text: str, name: str) -> None:
    if not text:
        raise InvalidParameter(name, f"{name} is missing; send a domain name, like example.com")
    url = _URL.match(text)
    if url is not None:
        host = url["host"] or "example.com"
        raise _refusal(name, text, f"is a URL; send the domain alone: {host[:MAX_ECHO]}")
    if "@" in text:
        host = text.rpartition("@")[2] or "example.com"
        raise _refusal(
            name, text, f"is a mail address; send what is behind the @: {host[:MAX_ECHO]}"
        )
    if parse_ip_address(text.strip("[]")) is not None:
        raise _refusal(name, text, "is an IP address; send a domain name, like example.com")
    if "/" in text or ":" in text:
        raise _refusal(name, text, "has more than a domain name in it; send example.com alone")


def _to_a_labels(text: str) -> str:
    """Map to lower-case A-labels (RFC 5891 with the mapping of UTS 46).

    :raises ValueError: in a few words, why it can't be.
    """
    if len(text) > MAX_INPUT:
        raise ValueError(f"it is longer than {MAX_NAME} characters")
    if text.isascii():
        domain = text.lower().removesuffix(".")
    else:
        domain = idna.encode(text, uts46=True).decode("ascii").lower().removesuffix(".")
    if len(domain) > MAX_NAME:
        raise ValueError(f"it is longer than {MAX_NAME} characters")
    for label in domain.split("."):
        if not label:
            raise ValueError("there is nothing between two dots")
        if len(label) > MAX_LABEL:
            raise ValueError(f"a part of it is longer than {MAX_LABEL} characters")
        if _ASCII_LABEL.fullmatch(label) is None:
            raise ValueError("its parts are letters, digits and inner hyphens, joined by dots")
    return domain


def _refusal(name: str, text: str, problem: str) -> InvalidParameter:
    shown = text if len(text) <= MAX_ECHO else text[:MAX_ECHO] + "..."
    return InvalidParameter(name, f"{name} {shown!r} {problem}")
