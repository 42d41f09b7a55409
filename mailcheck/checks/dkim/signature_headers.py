"""Parser for mails and their DKIM signatures, byte for byte (RFC 6376 3.4, 3.5).

`mailcheck.checks.content` reads the same mail for display, and unfolds and truncates it. A
signature covers every blank.
"""

import base64
import binascii
import re
from functools import cached_property

import idna
from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.content.decoding import end_lines
from mailcheck.checks.tags.tag_lists import parse_tag_list
from mailcheck.core.domains.domain_names import MAX_INPUT, MAX_LABEL, MAX_NAME, is_within

Field = tuple[bytes, bytes]
"""Name and body of a header field; the body includes its folding and the CRLF at its end."""

CRLF = b"\r\n"

MAX_FIELDS = 10_000
"""Maximum number of header fields that are read; mail through many lists has about 150."""

# A name, a colon, a body with its continuation lines. The quantifiers are possessive, so a line
# that is not a field fails at once.
_FIELD = re.compile(rb"([\x21-\x39\x3b-\x7e]++[ \t]*+):([^\n]*+(?>(?:\n[ \t][^\n]*+)*)\n?)")
_BLANK_LINE = re.compile(rb"\r?\n")
_MBOX_LINE = re.compile(rb">?From [^\n]*+\n")


class MailSource(Struct, frozen=True, dict=True):
    """The original fields, topmost first, and the body; every line ends in CRLF.

    A name keeps blanks before its colon. ``is_complete`` is false if the mail has more fields
    than are read; then no signature can be verified.
    """

    fields: tuple[Field, ...]
    body: bytes
    is_complete: bool

    @cached_property
    def by_name(self) -> dict[bytes, list[Field]]:
        """Group the fields by their names in lower case."""
        found: dict[bytes, list[Field]] = {}
        for field in self.fields:
            found.setdefault(field[0].rstrip().lower(), []).append(field)
        return found

    def get_all(self, name: bytes) -> tuple[bytes, ...]:
        """Return the bodies of all fields with a lower-case name, topmost first."""
        return tuple(body for _, body in self.by_name.get(name, ()))


def split_mail(raw_message: bytes) -> MailSource:
    """Split a mail of any bytes in one pass; a line that is not a field begins the body.

    Line ends without CR (a file saved on Unix) are read as CRLF.
    """
    fields: list[Field] = []
    mbox_line = _MBOX_LINE.match(raw_message)
    position = mbox_line.end() if mbox_line else 0
    is_complete = True
    while position < len(raw_message):
        blank = _BLANK_LINE.match(raw_message, position)
        if blank:
            position = blank.end()
            break
        match = _FIELD.match(raw_message, position)
        if match is None:
            break
        if len(fields) == MAX_FIELDS:
            is_complete = False
            break
        body = end_lines(match[2])
        fields.append((match[1], body if body.endswith(CRLF) else body + CRLF))
        position = match.end()
    return MailSource(tuple(fields), end_lines(raw_message[position:]), is_complete)


class SignatureHeader(Struct, frozen=True):
    """A parsed DKIM-Signature field (RFC 6376 3.5).

    ``index`` counts the fields from the top. ``problem`` says why the signature cannot be
    verified (a missing or broken tag); then other fields may be empty. ``key_name`` is
    ``<selector>._domainkey.<signing domain>``. ``body_length`` is the value of ``l=``.
    ``signed_at`` and ``expires_at`` are seconds since the epoch. Names are lower-case A-labels,
    and ``signed_fields`` are in lower case.
    """

    index: int
    signing_domain: str
    selector: str
    agent_id: str = ""
    algorithm: str = ""
    signed_fields: tuple[str, ...] = ()
    canonicalization: str = ""
    body_length: int | None = None
    signed_at: int | None = None
    expires_at: int | None = None
    problem: str = ""
    body_hash: bytes = b""
    signature: bytes = b""

    @property
    def key_name(self) -> str:
        """The name of the key record."""
        return f"{self.selector}._domainkey.{self.signing_domain}"


_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?", re.ASCII)


class InvalidName(Exception):
    """A name that cannot have a key; the text gives the reason."""


def to_a_labels(text: str) -> str:
    """Convert a domain or selector to lower-case A-labels.

    A single label and names of private networks are allowed, since this is what the signer wrote.

    :raises InvalidName: it is not a valid name.
    """
    if not text:
        raise InvalidName("it is empty")
    if len(text) > MAX_INPUT:
        raise InvalidName(f"it is longer than {MAX_NAME} characters")
    try:
        name = text if text.isascii() else idna.encode(text, uts46=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        raise InvalidName(f"{text[:MAX_LABEL]!r} is not a domain name") from None
    name = name.lower().removesuffix(".")
    if len(name) > MAX_NAME:
        raise InvalidName(f"it is longer than {MAX_NAME} characters")
    for label in name.split("."):
        if len(label) > MAX_LABEL or _LABEL.fullmatch(label) is None:
            raise InvalidName(f"{text[:MAX_LABEL]!r} is not a domain name")
    return name


MAX_SIGNATURES = 10
"""Maximum number of signatures that are verified; mail through two providers and a list has about
four."""

MAX_OCTETS = 64 * 1024
"""Maximum number of octets of a field without blanks; one with a copy of the header (z=) has
10,000."""

MAX_LOCAL_PART = 64  # maximum number of octets that are shown, RFC 5321 4.5.3.1.1

SHA1 = "rsa-sha1"
ALGORITHMS = ("rsa-sha256", "ed25519-sha256", SHA1)
FORMS = ("simple", "relaxed")
SHA256_OCTETS = 32

_MANDATORY = ("v", "a", "b", "bh", "d", "h", "s")
_BLANKS = b" \t\r\n"
_DIGITS = re.compile(r"[0-9]{1,76}", re.ASCII)  # RFC 6376 3.5, of l=; t= and x= are shorter


class MalformedSignature(Exception):
    """A signature cannot be verified; the text is the end of "The signature ..."."""


class SignatureTags(Struct, frozen=True):
    """The tags of a signature; each method raises `MalformedSignature` for an invalid tag."""

    tags: dict[str, str]

    def text(self, name: str, default: str = "") -> str:
        """Return a value."""
        return self.tags.get(name, default)

    def joined(self, name: str, default: str = "") -> str:
        """Return a value without the blanks that it may contain anywhere."""
        return "".join(self.text(name, default).split())

    def number(self, name: str) -> int | None:
        """Return a number, or `None` without the tag."""
        if name not in self.tags:
            return None
        text = self.text(name)
        if _DIGITS.fullmatch(text) is None:
            raise MalformedSignature(f"has an invalid number in {name}=")
        return int(text)

    def octets(self, name: str) -> bytes:
        """Return the octets of a value in Base64."""
        try:
            decoded = base64.b64decode(self.joined(name), validate=True)
        except (binascii.Error, ValueError):
            raise MalformedSignature(f"has invalid Base64 in {name}=") from None
        if not decoded:
            raise MalformedSignature(f"has an empty value in {name}=")
        return decoded

    def domain(self, name: str) -> str:
        """Return a name in A-labels."""
        try:
            return to_a_labels(self.text(name))
        except InvalidName as problem:
            raise MalformedSignature(f"has an invalid name in {name}=: {problem}") from None


def read_signatures(raw_message: bytes) -> tuple[tuple[SignatureHeader, ...], int]:
    """Parse the signatures of a mail, topmost first, and count those beyond the maximum.

    The mail may be any bytes: errors are reported in `SignatureHeader.problem`.
    """
    source = split_mail(raw_message)
    bodies = source.get_all(b"dkim-signature")
    problem = (
        "" if source.is_complete else f"is in a mail with more than {MAX_FIELDS:,} header fields"
    )
    verified = bodies[:MAX_SIGNATURES]
    headers = tuple(_read(index, body, problem) for index, body in enumerate(verified))
    return headers, len(bodies) - len(headers)


def parse_tags(body: bytes) -> SignatureTags:
    """Parse the tags in the body of a field.

    :raises MalformedSignature: it is not a tag list, or it is too long.
    """
    if len(body) > MAX_OCTETS and len(body.translate(None, _BLANKS)) > MAX_OCTETS:
        raise MalformedSignature(f"is longer than {MAX_OCTETS // 1024} KiB")
    parsed = parse_tag_list(body.decode("utf-8", "backslashreplace"))
    if parsed.violations:
        raise MalformedSignature(f"is not a list of tags: {parsed.violations[0]}")
    return SignatureTags(dict(parsed.tags))


def parse_canonicalization(tags: SignatureTags) -> str:
    """Return the forms of header and body, like ``relaxed/simple`` (RFC 6376 3.5, ``c=``).

    :raises MalformedSignature: a form is unknown.
    """
    header, slash, body = tags.text("c", "simple/simple").lower().partition("/")
    body = body if slash else "simple"
    if header not in FORMS or body not in FORMS:
        raise MalformedSignature(f"names an unknown canonicalization (c={tags.text('c')[:40]})")
    return f"{header}/{body}"


def parse_algorithm(tags: SignatureTags) -> str:
    """Return the algorithm.

    :raises MalformedSignature: the algorithm is unknown.
    """
    algorithm = tags.text("a").lower()
    if algorithm not in ALGORITHMS:
        raise MalformedSignature(f"was made with an unknown algorithm (a={algorithm[:40]})")
    return algorithm


def parse_key_location(tags: SignatureTags) -> tuple[str, str]:
    """Return selector and domain.

    :raises MalformedSignature: no key can exist there.
    """
    selector, domain = tags.domain("s"), tags.domain("d")
    if len(f"{selector}._domainkey.{domain}") > MAX_NAME:
        raise MalformedSignature(f"has a selector and a domain of over {MAX_NAME} characters")
    return selector, domain


def parse_signed_fields(tags: SignatureTags) -> tuple[str, ...]:
    """Return the names in ``h=``, in lower case.

    :raises MalformedSignature: From is missing (RFC 6376 5.4), or a name is empty (3.5).
    """
    names = tuple(tags.joined("h").lower().split(":"))
    if "from" not in names:
        raise MalformedSignature("does not cover the From field (h=)")
    if "" in names:
        raise MalformedSignature("has an empty name among the fields that it covers (h=)")
    return names


def require(tags: SignatureTags, names: tuple[str, ...]) -> None:
    """Check that tags exist.

    :raises MalformedSignature: a tag is missing.
    """
    missing = [f"{name}=" for name in names if name not in tags.tags]
    if missing:
        raise MalformedSignature(f"lacks {', '.join(missing)}")


def parse_signature(index: int, tags: SignatureTags) -> SignatureHeader:
    """Parse the common tags of DKIM and ARC message signatures (RFC 8617 4.1.2).

    :raises MalformedSignature: it cannot be verified (RFC 6376 6.1.1).
    """
    selector, domain = parse_key_location(tags)
    header = SignatureHeader(
        index=index,
        signing_domain=domain,
        selector=selector,
        agent_id=f"@{domain}",
        algorithm=parse_algorithm(tags),
        signed_fields=parse_signed_fields(tags),
        canonicalization=parse_canonicalization(tags),
        body_length=tags.number("l"),
        signed_at=tags.number("t"),
        expires_at=tags.number("x"),
        body_hash=tags.octets("bh"),
        signature=tags.octets("b"),
    )
    begin, end = header.signed_at, header.expires_at
    if begin is not None and end is not None and begin >= end:
        raise MalformedSignature("expires (x=) before it was made (t=)")
    if header.algorithm != SHA1 and len(header.body_hash) != SHA256_OCTETS:
        raise MalformedSignature("has a body hash (bh=) that is not SHA-256")
    return header


def _read(index: int, body: bytes, problem: str) -> SignatureHeader:
    tags = SignatureTags({})
    try:
        tags = parse_tags(body)
        require(tags, _MANDATORY)
        if tags.text("v") != "1":
            raise MalformedSignature(f"is of an unknown version (v={tags.text('v')[:40]})")
        header = parse_signature(index, tags)
        local_part, at, host = tags.text("i", f"@{header.signing_domain}").rpartition("@")
        if not at:
            raise MalformedSignature("has no @ in i=")
        try:
            host = to_a_labels(host)
        except InvalidName as invalid:
            raise MalformedSignature(f"has an invalid domain in i=: {invalid}") from None
        if not is_within(host, header.signing_domain):
            raise MalformedSignature(
                f"is for {host} (i=), which is not within {header.signing_domain} (d=)"
            )
        agent_id = f"{local_part[:MAX_LOCAL_PART]}@{host}"
        if "dns/txt" not in tags.joined("q", "dns/txt").lower().split(":"):
            raise MalformedSignature(
                f"requires an unknown method of key lookup (q={tags.text('q')[:40]})"
            )
        return replace(header, agent_id=agent_id, problem=problem)
    except MalformedSignature as malformed:
        problem = problem or str(malformed)
    # The parts of an invalid signature that can be shown.
    try:
        selector, domain = parse_key_location(tags)
    except MalformedSignature:
        selector = domain = ""
    algorithm = tags.text("a").lower()[:40]
    return SignatureHeader(index, domain, selector, algorithm=algorithm, problem=problem)
