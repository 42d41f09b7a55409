"""Parsing of domain names, addresses and selectors that users send.

The results are always lower-case A-labels (RFC 5890) without a trailing dot.
"""

import re
from urllib.parse import urlsplit

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
MAX_ECHO = 60  # characters of the input that an error repeats
MAX_INPUT = 1024  # characters: longer input is rejected before IDNA mapping

MAX_SELECTORS = 10
"""Maximum number of DKIM selectors in a request. Each costs a DNS query."""

MAX_ADDRESSES = 4
"""Maximum number of addresses of a domain that are checked. Each costs 20 queries."""

DEFAULT_PORTS = {"http": 80, "https": 443}

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

# Underscores are not allowed in host names, but are used in names such as _spf and _dmarc.
_ASCII_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?", re.ASCII)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://([^/?#@]*@)?(?P<host>[^/:?#]*)")

_PATH = re.compile(r"(?P<host>[^/:?#\s<>]+\.[^/:?#\s<>]+)(?::[0-9]+)?/(?![0-9]+$)")
_END_OF_HOST = re.compile(r"[/:?#>\s]")


def parse_domain(text: str, *, name: str = "domain", allow_special_use: bool = False) -> str:
    """Parse a domain name in any script.

    :param name: the parameter that had the value, for the error.
    :param allow_special_use: accept special-use domains such as ``.test`` and ``.local`` too.
    :raises InvalidParameter: the message says what to send instead.
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
        raise _refusal(name, text, "ends in a number; send a domain name, like example.com")
    return domain


def domain_meant(text: str) -> str:
    """Return the domain in a URL or mail address, and any other text unchanged.

    This is for pasted text: ``http://shop.example/x``, ``shop.example/x``,
    ``Ann <ann@shop.example>``. The result is not validated; pass it to `parse_domain`.
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
    """Parse the subject of a blocklist query: an IP address or a domain name.

    Addresses that no list can have (private, loopback, multicast, ...) are
    rejected. The test entries of RFC 5782 and the addresses reserved for
    documentation are accepted, since people use them to try a tool and lists
    give correct answers for them.

    :raises InvalidParameter: the message says what to send instead.
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
    """Parse the public address of a host that sends mail.

    :raises InvalidParameter: the text is not an address, or the address is not public.
    """
    query = parse_ip_address(text.strip())
    if query is None:
        raise _refusal(name, text.strip(), "is not an IP address, like 192.0.2.1 or 2001:db8::1")
    parse_blocklist_query(text, name=name, allow_private=allow_private)
    return query


def parse_selector(text: str, *, name: str = "selector") -> str:
    """Parse a DKIM selector: labels joined by dots, in lower case (RFC 6376 3.1).

    :raises InvalidParameter: the message says what to send instead.
    """
    selector = text.strip().lower()
    if "._domainkey" in selector:
        short = selector.partition("._domainkey")[0]
        problem = f"is the name of a DNS record; send only the selector: {short}"
        raise _refusal(name, selector, problem)
    if not selector.isascii() or not all(map(_is_label, selector.split("."))):
        raise _refusal(
            name, selector, "is not a selector; send the value of s= in a DKIM-Signature field"
        )
    return selector


def _is_label(text: str) -> bool:
    return len(text) <= MAX_LABEL and _ASCII_LABEL.fullmatch(text) is not None


def is_special_use(domain: str) -> bool:
    """Return whether the name is in a special-use domain, which the public DNS does not serve."""
    return domain.rpartition(".")[2] in SPECIAL_USE


def is_within(domain: str, parent: str) -> bool:
    """Return whether ``domain`` is ``parent`` or a name below it; both in A-labels."""
    return domain == parent or domain.endswith("." + parent)


def _refuse_what_is_no_domain(text: str, name: str) -> None:
    if not text:
        raise InvalidParameter(name, f"{name} is missing; send a domain name, like example.com")
    url = _URL.match(text)
    if url is not None:
        host = url["host"] or "example.com"
        raise _refusal(name, text, f"is a URL; send only the domain: {host[:MAX_ECHO]}")
    if "@" in text:
        host = text.rpartition("@")[2] or "example.com"
        raise _refusal(
            name, text, f"is a mail address; send only the part after the @: {host[:MAX_ECHO]}"
        )
    if parse_ip_address(text.strip("[]")) is not None:
        raise _refusal(name, text, "is an IP address; send a domain name, like example.com")
    if "/" in text or ":" in text:
        raise _refusal(
            name, text, "contains more than a domain; send only the domain, like example.com"
        )


def _to_a_labels(text: str) -> str:
    """Return a name as lower-case A-labels (RFC 5891 with the mapping of UTS 46).

    :raises ValueError: the text is not a domain name; the message says why.
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
            raise ValueError("it has an empty label")
        if len(label) > MAX_LABEL:
            raise ValueError(f"a part of it is longer than {MAX_LABEL} characters")
        if _ASCII_LABEL.fullmatch(label) is None:
            raise ValueError("its parts are letters, digits and inner hyphens, joined by dots")
    return domain


def origin_of(url: str) -> str:
    """Return the origin of a URL in the form that browsers send (RFC 6454 6.1).

    The host is in lower case, an internationalized name is in A-labels, and the default port is
    left out.

    :raises ValueError: the URL has no valid host or port.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if not host:
        raise ValueError("it has no host")
    if not host.isascii():
        host = idna.encode(host, uts46=True).decode("ascii")
    if ":" in host:
        host = f"[{host}]"
    is_default = parts.port in (None, DEFAULT_PORTS.get(parts.scheme))
    return f"{parts.scheme}://{host}{'' if is_default else f':{parts.port}'}"


def _refusal(name: str, text: str, problem: str) -> InvalidParameter:
    shown = text if len(text) <= MAX_ECHO else text[:MAX_ECHO] + "..."
    return InvalidParameter(name, f"{name} {shown!r} {problem}")
