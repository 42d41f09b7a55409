"""The parser of mail addresses (RFC 5321 4.1.2, with the UTF-8 of RFC 6531).

The parser also accepts forms that RFC 5321 excludes and real mailboxes have: dots at any place of
a local part, underscores at any place of a domain, and lengths over 64 octets. Addresses of this
server keep the strict form, see `explain_bad_local_part`.

Addresses of inboxes have the form ``dev-<id>+<tag>@<inbox domain>``. The tag is the subaddress
(RFC 5233). Tags are compared case-insensitively and returned as they were written. The tag may be
in front of the domain instead, see `without_subdomain`.
"""

import ipaddress
import re
from collections.abc import Container

from msgspec import Struct

from mailcheck.core.identifiers import SHORT_ID_LENGTH, RandomBytes, new_short_id

MAX_LOCAL_PART = 64  # octets, RFC 5321 4.5.3.1.1
MAX_DOMAIN = 255  # octets, RFC 5321 4.5.3.1.2
MAX_PATH = 800
"""Maximum octets of an address. RFC 5321 4.5.3.1 asks for no limit where possible: VERP and SRS
put a whole recipient into the sender's local part. An index entry of PostgreSQL holds an address
of this length after case folding, which makes it up to three times longer."""

# The classes list the excluded characters. A class that lists all of Unicode takes the regex
# compiler tens of milliseconds.
_ATEXT = r"""[^\x00-\x20()<>\[\]:;@\\,."\x7f]"""

DOT_ATOM_PATTERN = rf"{_ATEXT}+(?:\.{_ATEXT}+)*"
"""Pattern of a dot-atom (RFC 5322 3.2.3), in the syntax that ECMA-262 accepts too."""

_DOT_ATOM = re.compile(DOT_ATOM_PATTERN)
_UNQUOTED = re.compile(rf"(?:{_ATEXT}|\.)+")
_QUOTED = re.compile(r'"(?:[^\x00-\x1f"\\\x7f]|\\[ -~])*"')
_LETTER_OR_DIGIT = r"[^\x00-/:-@\[-`{-\x7f]"
_INSIDE_LABEL = r"[^\x00-,./:-@\[-^`{-\x7f]"
_LABEL = rf"{_LETTER_OR_DIGIT}(?:{_INSIDE_LABEL}*{_LETTER_OR_DIGIT})?"
_DOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?")
_SOURCE_ROUTE = re.compile(rf"@{_DOMAIN.pattern}(?:,@{_DOMAIN.pattern})*:")
# Labels that begin or end with underscores are not host names, but mail domains have them.
_MAIL_LABEL = rf"(?:_|{_LETTER_OR_DIGIT})(?:{_INSIDE_LABEL}*(?:_|{_LETTER_OR_DIGIT}))?"
_MAIL_DOMAIN = re.compile(rf"{_MAIL_LABEL}(?:\.{_MAIL_LABEL})*\.?")


class Mailbox(Struct, frozen=True):
    """A parsed address. ``local_part`` has no quotes; ``domain`` is kept as it was written.

    ``domain`` is empty for a local part without a domain, such as ``postmaster``.
    """

    local_part: str
    domain: str

    def __str__(self) -> str:
        local_part = self.local_part
        if _UNQUOTED.fullmatch(local_part) is None:
            escaped = local_part.replace("\\", "\\\\").replace('"', '\\"')
            local_part = f'"{escaped}"'
        return f"{local_part}@{self.domain}" if self.domain else local_part

    @property
    def folded(self) -> tuple[str, str]:
        """Both parts, folded for comparison."""
        return self.local_part.casefold(), self.domain.casefold().rstrip(".")


def is_dot_atom(text: str) -> bool:
    """Return whether the text may be an unquoted local part (RFC 5322 3.2.3)."""
    return _DOT_ATOM.fullmatch(text) is not None


def parse_mailbox(text: str) -> Mailbox:
    """Parse ``local-part@domain``. A source route in front is dropped (RFC 5321 C).

    :raises ValueError: the text is not an address; the message says why.
    """
    route = _SOURCE_ROUTE.match(text)
    if route is not None:
        text = text[route.end() :]
    if len(text.encode("utf-8")) > MAX_PATH:
        raise ValueError(f"address is longer than {MAX_PATH} octets")
    local_part, domain = _split(text)
    if domain.startswith("["):
        parse_address_literal(domain)
    elif _MAIL_DOMAIN.fullmatch(domain) is None or len(domain.encode("utf-8")) > MAX_DOMAIN:
        raise ValueError("domain is not a domain name")
    return Mailbox(local_part, domain)


def parse_plain_address(text: str) -> str:
    """Parse an ASCII address without quotes, a source route, or signs that some servers route by.

    The address can be a word of a header field and of a command as it is.

    :raises ValueError: the text is no such address; the message is a phrase that follows it.
    """
    local_part, _, domain = text.rpartition("@")
    is_plain = (
        text.isascii() and is_dot_atom(local_part) and not set("%!/|").intersection(local_part)
    )
    if not is_plain or not is_domain_name(domain) or "." not in domain:
        raise ValueError("is not a plain mail address like ops@example.com")
    if len(local_part) > MAX_LOCAL_PART or len(text) > MAX_DOMAIN:
        raise ValueError("is too long for a mail address")
    return text


def parse_local_name(text: str) -> Mailbox | None:
    """Parse a local part without a domain, such as ``root``; return `None` for anything else."""
    if len(text) > MAX_LOCAL_PART or _UNQUOTED.fullmatch(text) is None:
        return None
    return Mailbox(text, "")


def _split(text: str) -> tuple[str, str]:
    quoted = _QUOTED.match(text)
    if quoted is not None:
        if text[quoted.end() : quoted.end() + 1] != "@":
            raise ValueError("no @ after the quoted local part")
        return re.sub(r"\\(.)", r"\1", quoted.group()[1:-1]), text[quoted.end() + 1 :]
    local_part, at_sign, domain = text.partition("@")
    if not at_sign:
        raise ValueError("no @ in the address")
    if _UNQUOTED.fullmatch(local_part) is None:
        raise ValueError("local part is not a dot-atom or a quoted string")
    return local_part, domain


def explain_bad_local_part(local_part: str) -> str | None:
    """Return why a local part is not allowed on this server, or `None` if it is allowed.

    RFC 5321 4.1.2 and 4.5.3.1.1 apply: at most 64 octets, and dots only between other characters.
    """
    octets = len(local_part.encode("utf-8"))
    if octets > MAX_LOCAL_PART:
        return f"the local part has {octets} octets; the maximum is {MAX_LOCAL_PART}"
    if local_part.startswith(".") or local_part.endswith(".") or ".." in local_part:
        return "a dot must stand between two other characters of the local part"
    return None


def parse_address_literal(text: str) -> str:
    """Return the address in ``[192.0.2.1]`` or ``[IPv6:2001:db8::1]`` (RFC 5321 4.1.3).

    :raises ValueError: the text has neither form.
    """
    if not (text.startswith("[") and text.endswith("]")):
        raise ValueError("address literal is not in brackets")
    inner = text[1:-1]
    if inner[:5].lower() == "ipv6:":
        if "%" in inner:
            raise ValueError("an address literal has no zone")
        return str(ipaddress.IPv6Address(inner[5:]))
    return str(ipaddress.IPv4Address(inner))


def is_domain_name(text: str) -> bool:
    """Return whether the text has the form of a host name. A single label is accepted."""
    return len(text) <= MAX_DOMAIN and _DOMAIN.fullmatch(text) is not None


SEPARATOR = "+"
INBOX_PREFIX = "dev-"
UNTAGGED = ""

MAX_TAG = MAX_LOCAL_PART - len(INBOX_PREFIX) - SHORT_ID_LENGTH - len(SEPARATOR)
"""Maximum number of octets of a tag (46): the rest of the local part after the mailbox name
(RFC 5321 4.5.3.1.1)."""


def new_mailbox_name(random_bytes: RandomBytes) -> str:
    """Return a random local part for a new inbox."""
    return INBOX_PREFIX + new_short_id(random_bytes)


def split_subaddress(local_part: str) -> tuple[str, str]:
    """Split a local part into the mailbox name in lower case and the tag as it was written."""
    mailbox_name, _, tag = local_part.partition(SEPARATOR)
    return mailbox_name.lower(), tag


def join_subaddress(mailbox_name: str, tag: str, domain: str) -> str:
    """Return the address of a tag in an inbox, or the address of the inbox if the tag is empty."""
    local_part = f"{mailbox_name}{SEPARATOR}{tag}" if tag else mailbox_name
    return str(Mailbox(local_part, domain))


def join_subdomain(mailbox_name: str, tag: str, domain: str) -> str | None:
    """Return the address of a tag in an inbox without ``+``, or `None` if the tag contains one.

    Mail to it has the same tag, see `without_subdomain`.
    """
    if SEPARATOR in tag:
        return None
    return str(Mailbox(tag, f"{mailbox_name}.{domain}") if tag else Mailbox(mailbox_name, domain))


def without_subdomain(mailbox: Mailbox, domains: Container[str]) -> Mailbox:
    """Return the address with its tag in the local part, if the tag is in a subdomain.

    ``ann@dev-<id>.<domain>`` is ``dev-<id>+ann@<domain>``, and ``ann@shop.dev-<id>.<domain>`` is
    ``dev-<id>+shop-ann@<domain>``. Any other address is returned as it is.

    :param domains: the domains of this server, in lower case.
    """
    written = mailbox.domain.removesuffix(".")
    if written.lower() in domains:
        return mailbox
    first, _, rest = written.partition(".")
    second, _, behind = rest.partition(".")
    for tag, name, domain in ((UNTAGGED, first, rest), (first, second, behind)):
        if name.lower().startswith(INBOX_PREFIX) and domain.lower() in domains:
            whole = "-".join(filter(None, (tag, mailbox.local_part)))
            return Mailbox(f"{name}{SEPARATOR}{whole}", domain)
    return mailbox


def fold_tag(tag: str) -> str:
    """Return a tag folded for comparison."""
    return tag.casefold()


def explain_bad_tag(tag: str) -> str | None:
    """Return why a text cannot be a tag, or `None` if it can.

    The empty text stands for "untagged" and is allowed.
    """
    if tag == UNTAGGED:
        return None
    octets = len(tag.encode("utf-8", "surrogateescape"))
    if octets > MAX_TAG:
        return f"a tag has at most {MAX_TAG} octets; you sent {octets}"
    if not is_dot_atom(tag):
        return (
            "a tag is a dot-atom: letters, digits and !#$%&'*+-/=?^_`{|}~, with single dots inside"
        )
    return None
