"""Host names in a mail: normalization, and lists of known hosts."""

import ipaddress
import re
import tomllib
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import idna

from mailcheck.core.domains.domain_names import parse_domain
from mailcheck.core.errors import InvalidParameter

# As in browsers: "\" separates like "/", and the part before the last "@" is a user name.
_AUTHORITY = re.compile(r"https?://([^/?#\\]*+)", re.IGNORECASE)
_PORT = re.compile(r":([0-9]*+)\Z")
_NUMBER = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)", re.IGNORECASE | re.ASCII)
_SCRIPTS_APART = frozenset(("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"))
"""Scripts with letters that look alike. Japanese and Korean names mix Latin with their own."""


def split_authority(url: str) -> tuple[str, str, str]:
    """Return user, host and port of a URL as written; a missing part is empty."""
    match = _AUTHORITY.match(url)
    authority = match[1] if match else ""
    user, _, rest = authority.rpartition("@")
    port = _PORT.search(rest)
    return user, rest[: port.start()] if port else rest, port[1] if port else ""


@lru_cache(maxsize=1024)
def normalize_host(host: str) -> str:
    """Return a domain name in lower-case A-labels, or an empty string if it is not valid."""
    try:
        return parse_domain(host, allow_special_use=True)
    except InvalidParameter:
        return ""


def is_address(host: str) -> bool:
    """Return whether a browser treats the host as an IP address (URL standard 3.5)."""
    bare = host.strip("[]").rstrip(".")
    try:
        ipaddress.ip_address(bare)
    except ValueError:
        return _NUMBER.fullmatch(bare.rpartition(".")[2]) is not None
    return True


@lru_cache(maxsize=1024)
def decode_host(host: str) -> str:
    """Return a host in Unicode for display, or unchanged if it cannot be decoded."""
    if "xn--" not in host:
        return host
    try:
        return idna.decode(host)
    except (idna.IDNAError, UnicodeError):
        return host


def mixes_scripts(host: str) -> bool:
    """Return whether a label mixes letters of two scripts that look alike (UTS 39 5)."""
    return any(len(_scripts(label) & _SCRIPTS_APART) > 1 for label in decode_host(host).split("."))


def _scripts(label: str) -> frozenset[str]:
    return frozenset(
        unicodedata.name(letter, "").partition(" ")[0] for letter in label if letter.isalpha()
    )


@cache
def _table() -> dict[str, Any]:
    text = files(__package__).joinpath("known_hosts.toml").read_text("utf-8")
    return tomllib.loads(text)


@cache
def host_list(key: str) -> frozenset[str]:
    """Return one list of the table."""
    return frozenset(_table()[key])


def is_on_list(host: str, key: str) -> bool:
    """Return whether a host or one of its parent domains is on a list."""
    return any(parent in host_list(key) for parent in _parents(host))


def _parents(host: str) -> Iterable[str]:
    labels = host.split(".")
    return (".".join(labels[start:]) for start in range(len(labels)))


def is_freemail(domain: str) -> bool:
    """Return whether a domain offers free mailboxes to everyone."""
    return domain in host_list("freemail")


def is_gmail(domain: str) -> bool:
    """Return whether a domain is one of Gmail's."""
    return domain in host_list("gmail")
