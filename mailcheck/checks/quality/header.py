"""The header of a mail (author, date, subject and other fields) and the findings about it."""

import re
from calendar import timegm
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from email.utils import parsedate_tz

from mailcheck.checks.content.decoding import (
    decode_header_bytes,
    decode_words,
    flatten_controls,
)
from mailcheck.checks.content.header.fields import HeaderField
from mailcheck.checks.content.header.mailboxes import parse_first_mailbox, parse_mailboxes
from mailcheck.checks.findings import ChargedFinding
from mailcheck.checks.mail_domains import is_local_name, registrable_domain
from mailcheck.checks.quality.facts import (
    Author,
    BulkFacts,
    DateFacts,
    MailFacts,
    MessageIdFacts,
    UnsubscribeFacts,
)
from mailcheck.checks.quality.hosts import is_freemail, normalize_host
from mailcheck.checks.quality.wording import enumerate_some, quote
from mailcheck.checks.weights import charge
from mailcheck.core.instants import DAY, HOUR, SECOND, Instant

MAX_DATE = 100
"""Maximum number of characters of a Date field; the format of RFC 5322 has 31, plus comments."""

_COMMENT = re.compile(r"\([^()]*+\)")
_DATE_TIME = re.compile(
    r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),\s*+)?[0-9]{1,2}\s++"
    r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\s++[0-9]{4}\s++"
    r"[0-2][0-9]:[0-5][0-9](?::[0-6][0-9])?\s++(?:[+-][0-9]{2}[0-5][0-9]|GMT|UT)",
    re.ASCII | re.IGNORECASE,
)
_LEAP_SECOND = 60
_FIRST_YEAR, _LAST_YEAR = 1970, 9999
_FARTHEST = 86_400  # maximum seconds between a time zone and UTC


def read_date(body: bytes) -> DateFacts:
    """Parse the body of a Date field. Never raises."""
    text = flatten_controls(decode_header_bytes(body[: MAX_DATE * 4]))
    shown = text[:MAX_DATE]
    bare = " ".join(_COMMENT.sub(" ", shown).split())
    instant = None if len(text) > MAX_DATE else _find_instant(bare)
    if instant is None:
        return DateFacts(shown, None, "cannot be read as a date")
    if _DATE_TIME.fullmatch(bare) is None:
        return DateFacts(shown, instant, "does not have the format of RFC 5322")
    return DateFacts(shown, instant)


def _find_instant(text: str) -> Instant | None:
    try:
        found = parsedate_tz(text)
    except (ValueError, IndexError, TypeError, OverflowError):
        return None
    if found is None:
        return None
    year, month, day, hour, minute, second = found[:6]
    zone = found[9] or 0
    if not _FIRST_YEAR <= year <= _LAST_YEAR or second > _LEAP_SECOND or abs(zone) >= _FARTHEST:
        return None
    try:
        datetime(year, month, day, hour, minute)
    except ValueError:
        return None
    return Instant((timegm((year, month, day, hour, minute, second)) - zone) * SECOND)


# fmt: off
ONLY_ONCE = frozenset([
    # RFC 5322 3.6
    "date", "from", "sender", "reply-to", "to", "cc", "bcc", "message-id", "in-reply-to",
    "references", "subject",
    # RFC 2045 3, RFC 2369 2, RFC 8058 3.1
    "mime-version", "content-type", "content-transfer-encoding", "list-unsubscribe",
    "list-unsubscribe-post", "list-id",
])
# fmt: on
"""Fields that may occur at most once in a mail."""

MAX_SHOWN = 998
"""Maximum number of characters of a field body: the longest line that RFC 5322 2.1.1 allows."""

MAX_AUTHORS = 100
"""Maximum number of mailboxes of all From fields together; more than one is rare."""

MAX_URIS = 20
"""Maximum number of URIs of List-Unsubscribe; receivers read the first few."""

_MESSAGE_ID = re.compile(
    # RFC 5322 3.6.4: the left side is a dot-atom or quoted, the right side a dot-atom or literal.
    r"<(?:[^\s<>@\"()\[\],;:\\]++|\"[^\"\\]*+\")@(?P<domain>[^\s<>@\[\]()\\]++|\[[^\s\[\]\\]*+\])>"
)
_URI = re.compile(r"<([^<>]*+)>")


def names_of_fields(fields: Sequence[HeaderField]) -> tuple[str, ...]:
    """Return the names in order, in lower case."""
    return tuple(field.name.lower() for field in fields)


def find_repeated(names: Sequence[str]) -> tuple[str, ...]:
    """Return the fields that occur more than once but must not."""
    counted = Counter(name for name in names if name in ONLY_ONCE)
    return tuple(name for name, count in counted.items() if count > 1)


def find_8bit(fields: Sequence[HeaderField]) -> tuple[str, ...]:
    """Return the fields with octets over 127, which RFC 6532 allows but RFC 5322 does not."""
    return tuple(dict.fromkeys(f.name.lower() for f in fields if not f.body.isascii()))


def read_authors(fields: Sequence[HeaderField]) -> tuple[Author, ...]:
    """Parse the mailboxes of all From fields, in order."""
    bodies = (f.as_text() for f in fields if f.name.lower() == "from")
    found = (mailbox for body in bodies for mailbox in parse_mailboxes(body))
    return tuple(
        Author(address, name, normalize_host(address.rpartition("@")[2]) if "@" in address else "")
        for address, name in list(found)[:MAX_AUTHORS]
    )


def read_address(fields: Sequence[HeaderField], name: str) -> str:
    """Return the address of the first mailbox of a field, or an empty string."""
    found = find_field(fields, name)
    return parse_first_mailbox(found.as_text())[0] if found else ""


def read_text(fields: Sequence[HeaderField], name: str) -> str:
    """Return a field as text with RFC 2047 decoded, or an empty string."""
    found = find_field(fields, name)
    return found.decode().strip()[:MAX_SHOWN] if found else ""


def find_field(fields: Sequence[HeaderField], name: str) -> HeaderField | None:
    """Return the first field with a lower-case name, or `None`."""
    return next((field for field in fields if field.name.lower() == name), None)


def read_message_id(fields: Sequence[HeaderField]) -> MessageIdFacts | None:
    """Parse the Message-ID; return `None` without one."""
    found = find_field(fields, "message-id")
    if found is None:
        return None
    text = flatten_controls(decode_header_bytes(found.body[: MAX_SHOWN * 4]))[:MAX_SHOWN]
    match = _MESSAGE_ID.fullmatch(text)
    if match is None:
        domain = text.strip("<> ").rpartition("@")[2] if "@" in text else ""
        return MessageIdFacts(text, False, domain.lower())
    return MessageIdFacts(text, True, match["domain"].lower())


def read_unsubscribe(fields: Sequence[HeaderField]) -> UnsubscribeFacts:
    """Parse List-Unsubscribe (RFC 2369 3.2) and List-Unsubscribe-Post (RFC 8058 3.1)."""
    found = [field for field in fields if field.name.lower() == "list-unsubscribe"]
    post = find_field(fields, "list-unsubscribe-post")
    body = ", ".join(decode_header_bytes(field.body) for field in found)
    said = decode_header_bytes(post.body) if post else ""
    uris = uris_in(body)
    return UnsubscribeFacts(
        is_present=bool(found),
        uris=uris,
        post=flatten_controls(said)[:MAX_SHOWN] if post else None,
        is_encoded=uris != uris_in(decode_words(body))
        or ("=?" in said and said != decode_words(said)),
    )


def uris_in(body: str) -> tuple[str, ...]:
    """Return the URIs in angle brackets of a decoded field body (RFC 2369 2)."""
    uris = ("".join(match[1].split()) for match in _URI.finditer(body))
    return tuple(flatten_controls(uri) for uri in uris if uri)[:MAX_URIS]


def read_bulk(fields: Sequence[HeaderField]) -> BulkFacts:
    """Read the signs of bulk mail."""
    names = names_of_fields(fields)
    return BulkFacts(
        list_fields=tuple(dict.fromkeys(name for name in names if name.startswith("list-"))),
        precedence=read_text(fields, "precedence").lower(),
        auto_submitted=read_text(fields, "auto-submitted").lower(),
        feedback_id=read_text(fields, "feedback-id"),
    )


_ADDRESS = re.compile(r"[^\s@<>()\"',;]{1,64}@((?>(?:[\w-]++\.)+)[^\W\d_]{2,})")
_NO_REPLY = re.compile(r"(?:do-?not|no)[._-]?reply", re.IGNORECASE)


def judge_author(facts: MailFacts) -> Iterator[ChargedFinding]:
    """Yield findings about From, Sender and Reply-To."""
    if not facts.author_fields:
        yield charge("headers.from-missing")
    elif not facts.author_domains:
        yield charge("headers.from-unreadable")
    if facts.author_fields > 1:
        yield charge("headers.from-repeated", author_fields=facts.author_fields)
    elif len(facts.author_domains) > 1:
        yield charge(
            "headers.from-several-domains", author_domains=enumerate_some(facts.author_domains)
        )
    elif len(facts.authors) > 1 and not facts.sender_address:
        yield charge("headers.sender-missing")
    for author in facts.authors:
        yield from _judge_name(author)
    domain = normalize_host(facts.reply_to_address.rpartition("@")[2])
    if domain and is_freemail(domain) and domain not in facts.author_domains:
        yield charge("headers.reply-to-freemail", domain=domain)
    local_part = facts.author_address.rpartition("@")[0]
    if _NO_REPLY.search(local_part) and not facts.reply_to_address:
        yield charge("headers.no-reply")


def _judge_name(author: Author) -> Iterator[ChargedFinding]:
    match = _ADDRESS.search(author.display_name)
    shown = normalize_host(match[1]) if match else ""
    if shown and author.domain and registrable_domain(shown) != registrable_domain(author.domain):
        yield charge("headers.name-shows-address", shown=quote(shown), domain=quote(author.domain))


MIN_CAPITALS = 8
"""Minimum number of letters of a subject for the finding about capitals. "OTP" and "RE: FAQ" have
fewer."""

MAX_EMOJI = 2
MAX_LENGTH = 150
"""Maximum number of characters of a subject; message lists show 40 to 80 of them."""

_REPLY = re.compile(r"(?:re|aw|sv|fwd?|wg|tr)\s?:", re.IGNORECASE)
_PUNCTUATION = re.compile(r"[!?]{3}|\${3}|[!?][^!?]{0,200}[!?][^!?]{0,200}[!?]")
# The Unicode blocks of emoji. A joiner or a skin tone belongs to the emoji before it.
_EMOJI = re.compile(r"[\u2600-\u27bf\u2b50\u2b55\U0001f1e6-\U0001f3fa\U0001f400-\U0001faff]")


def count_emoji(text: str) -> int:
    """Return the approximate number of emoji in a text; a flag counts as two."""
    return len(_EMOJI.findall(text))


def judge_subject(facts: MailFacts) -> Iterator[ChargedFinding]:
    """Yield findings about the subject."""
    subject = facts.subject
    if not subject:
        yield charge("headers.subject-missing")
    is_answer = facts.has_field("in-reply-to") or facts.has_field("references")
    if _REPLY.match(subject) and not is_answer:
        yield charge("headers.fake-reply", subject=quote(subject))
    letters = [letter for letter in subject if letter.lower() != letter.upper()]
    if len(letters) >= MIN_CAPITALS and all(map(str.isupper, letters)):
        yield charge("headers.subject-capitals")
    emoji = count_emoji(subject)
    if emoji > MAX_EMOJI:
        yield charge("headers.subject-emoji", emoji=emoji)
    if _PUNCTUATION.search(subject):
        yield charge("headers.subject-punctuation")
    if len(subject) > MAX_LENGTH:
        yield charge("headers.subject-long", count=len(subject))


FUTURE = 2 * HOUR
"""Maximum time by which a Date may be in the future. Wrong clocks and time zones cause smaller
differences."""

PAST = DAY
"""Maximum age of a Date; mail that waited in a queue overnight is common."""

LARGE_HEADER = 64 * 1024
"""Size of a large header in octets. Postfix truncates a header at 100 KiB (header_size_limit)."""


def judge_headers(
    facts: MailFacts, received_at: Instant, *, is_smtputf8: bool = False
) -> Iterator[ChargedFinding]:
    """Yield the findings about the header of a mail that arrived at ``received_at``.

    :param is_smtputf8: whether the mail was sent with SMTPUTF8 (RFC 6531), so that its header may
        contain UTF-8.
    """
    yield from judge_author(facts)
    yield from _judge_date(facts, received_at)
    yield from _judge_message_id(facts)
    yield from judge_subject(facts)
    repeated = [name for name in facts.repeated_fields if name != "from"]
    if repeated:
        yield charge("headers.repeated", repeated=enumerate_some(repeated))
    if not (facts.has_field("to") or facts.has_field("cc")):
        yield charge("headers.to-missing")
    if facts.has_field("content-type") and not facts.has_field("mime-version"):
        yield charge("headers.mime-version-missing")
    if facts.has_field("return-path"):
        yield charge("headers.return-path")
    if facts.raw_8bit_fields and not is_smtputf8:
        yield charge("headers.raw-8bit", raw_8bit_fields=enumerate_some(facts.raw_8bit_fields))
    if facts.header_size > LARGE_HEADER:
        yield charge("headers.large", kibibytes=facts.header_size // 1024)


def _judge_date(facts: MailFacts, received_at: Instant) -> Iterator[ChargedFinding]:
    date = facts.date
    if date is None:
        yield charge("headers.date-missing")
        return
    if date.instant is None:
        yield charge("headers.date-unreadable", problem=date.problem, text=quote(date.text))
    elif date.problem:
        yield charge("headers.date-form", problem=date.problem, text=quote(date.text))
    if date.instant is not None and date.instant - received_at > FUTURE:
        yield charge("headers.date-future", text=quote(date.text))
    if date.instant is not None and received_at - date.instant > PAST:
        yield charge("headers.date-old", shown=quote(date.text))


def _judge_message_id(facts: MailFacts) -> Iterator[ChargedFinding]:
    found = facts.message_id
    if found is None:
        yield charge("headers.message-id-missing")
    elif not found.is_well_formed:
        yield charge("headers.message-id-malformed", text=quote(found.text))
    elif not found.domain.startswith("[") and is_local_name(found.domain):
        yield charge("headers.message-id-local", domain=quote(found.domain))
