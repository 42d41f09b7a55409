"""The header of a mail: its author, date, subject and fields, and what is wrong with them."""

import re
from calendar import timegm
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from email.utils import parsedate_tz

from mailcheck.checks.content.decoding import decode_header_bytes, flatten_controls
from mailcheck.checks.content.header import HeaderField, parse_first_mailbox, parse_mailboxes
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
"""Characters of a Date field; the form of RFC 5322 has 31, comments come on top."""

_COMMENT = re.compile(r"\([^()]*+\)")
_DATE_TIME = re.compile(
    r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),\s*+)?[0-9]{1,2}\s++"
    r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\s++[0-9]{4}\s++"
    r"[0-2][0-9]:[0-5][0-9](?::[0-6][0-9])?\s++(?:[+-][0-9]{2}[0-5][0-9]|GMT|UT)",
    re.ASCII | re.IGNORECASE,
)
_LEAP_SECOND = 60
_FIRST_YEAR, _LAST_YEAR = 1970, 9999
_FARTHEST = 86_400  # seconds that a zone is away from UTC


def read_date(body: bytes) -> DateFacts:
    """Read a Date field's body. Never raises."""
    text = flatten_controls(decode_header_bytes(body[: MAX_DATE * 4]))
    shown = text[:MAX_DATE]
    bare = " ".join(_COMMENT.sub(" ", shown).split())
    instant = None if len(text) > MAX_DATE else _find_instant(bare)
    if instant is None:
        return DateFacts(shown, None, "can't be read as a date")
    if _DATE_TIME.fullmatch(bare) is None:
        return DateFacts(shown, instant, "is not in the form of RFC 5322")
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
"""Fields that a mail has once at most."""

MAX_SHOWN = 998
"""Characters of a field body that are kept: what RFC 5322 2.1.1 allows a line to have."""

MAX_AUTHORS = 100
"""Mailboxes of all From fields together; more than one is rare."""

MAX_URIS = 20
"""URIs of List-Unsubscribe; receivers read the first few."""

_MESSAGE_ID = re.compile(
    # RFC 5322 3.6.4: dot-atom or quoted left part, dot-atom or literal right part.
    r"<(?:[^\s<>@\"()\[\],;:\\]++|\"[^\"\\]*+\")@(?P<domain>[^\s<>@\[\]()\\]++|\[[^\s\[\]\\]*+\])>"
)
_URI = re.compile(r"<([^<>]*+)>")


def names_of_fields(fields: Sequence[HeaderField]) -> tuple[str, ...]:
    """Give the names in order, in lower case."""
    return tuple(field.name.lower() for field in fields)


def find_repeated(names: Sequence[str]) -> tuple[str, ...]:
    """Name the fields that occur more than once though they may not."""
    counted = Counter(name for name in names if name in ONLY_ONCE)
    return tuple(name for name, count in counted.items() if count > 1)


def find_8bit(fields: Sequence[HeaderField]) -> tuple[str, ...]:
    """Name the fields with octets over 127, which RFC 5322 does not allow and RFC 6532 does."""
    return tuple(dict.fromkeys(f.name.lower() for f in fields if not f.body.isascii()))


def read_authors(fields: Sequence[HeaderField]) -> tuple[Author, ...]:
    """Read the mailboxes of all From fields, in order."""
    bodies = (f.as_text() for f in fields if f.name.lower() == "from")
    found = (mailbox for body in bodies for mailbox in parse_mailboxes(body))
    return tuple(
        Author(address, name, normalize_host(address.rpartition("@")[2]) if "@" in address else "")
        for address, name in list(found)[:MAX_AUTHORS]
    )


def read_address(fields: Sequence[HeaderField], name: str) -> str:
    """Read the address of the first mailbox of a field; "" without one."""
    found = find_field(fields, name)
    return parse_first_mailbox(found.as_text())[0] if found else ""


def read_text(fields: Sequence[HeaderField], name: str) -> str:
    """Read a field as text, RFC 2047 undone; "" without one."""
    found = find_field(fields, name)
    return found.decode().strip()[:MAX_SHOWN] if found else ""


def find_field(fields: Sequence[HeaderField], name: str) -> HeaderField | None:
    """Find the first field of a (lower case) name."""
    return next((field for field in fields if field.name.lower() == name), None)


def read_message_id(fields: Sequence[HeaderField]) -> MessageIdFacts | None:
    """Read the Message-ID."""
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
    """Read List-Unsubscribe (RFC 2369 3.2) and List-Unsubscribe-Post (RFC 8058 3.1)."""
    found = find_field(fields, "list-unsubscribe")
    post = find_field(fields, "list-unsubscribe-post")
    body = decode_header_bytes(found.body) if found else ""
    uris = ("".join(match[1].split()) for match in _URI.finditer(body))
    kept = tuple(flatten_controls(uri) for uri in uris if uri)[:MAX_URIS]
    return UnsubscribeFacts(
        is_present=found is not None,
        uris=kept,
        post=flatten_controls(decode_header_bytes(post.body))[:MAX_SHOWN] if post else None,
    )


def read_bulk(fields: Sequence[HeaderField]) -> BulkFacts:
    """Read what makes a mail look like one of many."""
    names = names_of_fields(fields)
    return BulkFacts(
        list_fields=tuple(dict.fromkeys(name for name in names if name.startswith("list-"))),
        precedence=read_text(fields, "precedence").lower(),
        auto_submitted=read_text(fields, "auto-submitted").lower(),
        feedback_id=read_text(fields, "feedback-id"),
    )


_ADDRESS = re.compile(r"[^\s@<>()\"',;]{1,64}@((?:[\w-]++\.)++[^\W\d_]{2,})")
_NO_REPLY = re.compile(r"(?:do-?not|no)[._-]?reply", re.IGNORECASE)


def judge_author(facts: MailFacts) -> Iterator[ChargedFinding]:
    """Judge From, Sender and Reply-To."""
    yield from _judge_presence(facts)
    yield from _judge_number(facts)
    for author in facts.authors:
        yield from _judge_name(author)
    yield from _judge_replies(facts)


def _judge_presence(facts: MailFacts) -> Iterator[ChargedFinding]:
    if not facts.author_fields:
        yield charge(
            "headers.from-missing",
            "The mail has no From field, so nobody sees who it is from, and large receivers refuse"
            " it.",
        )
    elif not facts.author_domains:
        yield charge(
            "headers.from-unreadable",
            "The From field holds no mail address with a domain name, so no receiver can check"
            " who the mail is from.",
        )


def _judge_number(facts: MailFacts) -> Iterator[ChargedFinding]:
    if facts.author_fields > 1:
        yield charge(
            "headers.from-repeated",
            f"The mail has {facts.author_fields} From fields, a trick of forgers; Gmail and others"
            " refuse such mail.",
        )
    elif len(facts.author_domains) > 1:
        yield charge(
            "headers.from-several-domains",
            "The From field names authors of several domains"
            f" ({enumerate_some(facts.author_domains)}), which DMARC can't judge; many receivers"
            " refuse it.",
        )
    elif len(facts.authors) > 1 and not facts.sender_address:
        yield charge(
            "headers.sender-missing",
            "The mail has several authors and no Sender field, which has to say who of them sent"
            " it (RFC 5322 3.6.2).",
        )


def _judge_name(author: Author) -> Iterator[ChargedFinding]:
    match = _ADDRESS.search(author.display_name)
    shown = normalize_host(match[1]) if match else ""
    if shown and author.domain and registrable_domain(shown) != registrable_domain(author.domain):
        yield charge(
            "headers.name-shows-address",
            f"The sender's name shows an address at {quote(shown)}, but the mail is from"
            f" {quote(author.domain)}; filters take that for a forgery.",
        )


def _judge_replies(facts: MailFacts) -> Iterator[ChargedFinding]:
    domain = normalize_host(facts.reply_to_address.rpartition("@")[2])
    if domain and is_freemail(domain) and domain not in facts.author_domains:
        yield charge(
            "headers.reply-to-freemail",
            f"Answers go to a free mailbox at {domain}, another domain than the sender's; filters"
            " know that from fraud.",
        )
    local_part = facts.author_address.rpartition("@")[0]
    if _NO_REPLY.search(local_part) and not facts.reply_to_address:
        yield charge(
            "headers.no-reply",
            "The sender's address says that nobody reads answers; people who answer and are"
            " ignored mark mail as spam sooner.",
        )


MIN_CAPITALS = 8
"""Letters a subject must have before all capitals are shouting: "OTP", "RE: FAQ" are not."""

MAX_EMOJI = 2
MAX_LENGTH = 150
"""Characters of a subject; lists show 40 to 80 of them."""

_REPLY = re.compile(r"(?:re|aw|sv|fwd?|wg|tr)\s?:", re.IGNORECASE)
_PUNCTUATION = re.compile(r"[!?]{3}|\${3}|[!?][^!?]{0,200}[!?][^!?]{0,200}[!?]")
# The blocks that phones draw as pictures; a joiner or a skin tone belongs to what is before it.
_EMOJI = re.compile(r"[\u2600-\u27bf\u2b50\u2b55\U0001f1e6-\U0001f3fa\U0001f400-\U0001faff]")


def count_emoji(text: str) -> int:
    """Count the pictures in a text, roughly: a flag is two."""
    return len(_EMOJI.findall(text))


def judge_subject(facts: MailFacts) -> Iterator[ChargedFinding]:
    """Judge the subject line."""
    subject = facts.subject
    if not subject:
        yield charge(
            "headers.subject-missing",
            "The mail has no subject; people and filters take such mail for spam.",
        )
    is_answer = facts.has_field("in-reply-to") or facts.has_field("references")
    if _REPLY.match(subject) and not is_answer:
        yield charge(
            "headers.fake-reply",
            f"The subject looks like an answer or a forward ({quote(subject)}), but the mail"
            " refers to no other; filters know that trick.",
        )
    yield from _judge_style(subject)


def _judge_style(subject: str) -> Iterator[ChargedFinding]:
    letters = [letter for letter in subject if letter.lower() != letter.upper()]
    if len(letters) >= MIN_CAPITALS and all(map(str.isupper, letters)):
        meaning = "The subject is written in capitals only, as that of much spam is."
        yield charge("headers.subject-capitals", meaning)
    emoji = count_emoji(subject)
    if emoji > MAX_EMOJI:
        meaning = f"The subject has {emoji} pictures (emoji); some filters and people mark that."
        yield charge("headers.subject-emoji", meaning)
    if _PUNCTUATION.search(subject):
        meaning = "The subject has more exclamation or question marks than a sentence needs."
        yield charge("headers.subject-punctuation", meaning)
    if len(subject) > MAX_LENGTH:
        meaning = f"The subject has {len(subject)} characters; mail programs show 40 to 80 of them."
        yield charge("headers.subject-long", meaning)


FUTURE = 2 * HOUR
"""How far ahead of us a Date may be: clocks and time zones are set wrong by less."""

PAST = DAY
"""How old a Date may be: mail that waited in a queue over night is common."""

LARGE_HEADER = 64 * 1024
"""Octets of a header that come near where Postfix cuts (header_size_limit, 100 KiB)."""


def judge_headers(
    facts: MailFacts, received_at: Instant, *, is_smtputf8: bool = False
) -> tuple[ChargedFinding, ...]:
    """Judge the header of a mail that came in at a moment.

    :param is_smtputf8: the mail was sent with SMTPUTF8 (RFC 6531), so its
        header may hold UTF-8.
    """
    return (
        *judge_author(facts),
        *_judge_date(facts, received_at),
        *_judge_message_id(facts),
        *judge_subject(facts),
        *_judge_fields(facts),
        *_judge_octets(facts, is_smtputf8),
    )


def _judge_date(facts: MailFacts, received_at: Instant) -> Iterator[ChargedFinding]:
    date = facts.date
    if date is None:
        meaning = "The mail has no Date field, which every mail must have; some receivers refuse it"
        yield charge("headers.date-missing", f"{meaning}.")
        return
    if date.instant is None:
        meaning = f"The Date field {date.problem} ({quote(date.text)}), so the mail has no time."
        yield charge("headers.date-unreadable", meaning)
    elif date.problem:
        meaning = f"The Date field {date.problem} ({quote(date.text)}); some programs misread it."
        yield charge("headers.date-form", meaning)
    if date.instant is not None and date.instant - received_at > FUTURE:
        meaning = f"The Date field lies in the future ({quote(date.text)}), as spam's often does."
        yield charge("headers.date-future", meaning)
    if date.instant is not None and received_at - date.instant > PAST:
        meaning = f"The Date field is more than a day old ({quote(date.text)}); filters mark that."
        yield charge("headers.date-old", meaning)


def _judge_message_id(facts: MailFacts) -> Iterator[ChargedFinding]:
    found = facts.message_id
    if found is None:
        meaning = "The mail has no Message-ID, by which programs find answers and duplicates."
        yield charge("headers.message-id-missing", meaning)
    elif not found.is_well_formed:
        meaning = f"The Message-ID is malformed ({quote(found.text)}); filters mark that."
        yield charge("headers.message-id-malformed", meaning)
    elif not found.domain.startswith("[") and is_local_name(found.domain):
        meaning = f"The Message-ID ends in {quote(found.domain)}, a name only your network knows."
        yield charge("headers.message-id-local", meaning)


def _judge_fields(facts: MailFacts) -> Iterator[ChargedFinding]:
    repeated = [name for name in facts.repeated_fields if name != "from"]
    if repeated:
        yield charge(
            "headers.repeated",
            f"Fields that may stand once stand several times: {enumerate_some(repeated)}; Gmail"
            " refuses such mail, and programs show different ones.",
        )
    if not (facts.has_field("to") or facts.has_field("cc")):
        yield charge(
            "headers.to-missing",
            "The mail names nobody it is to; filters know that from mass mail.",
        )
    if facts.has_field("content-type") and not facts.has_field("mime-version"):
        yield charge(
            "headers.mime-version-missing",
            "The mail has MIME parts but does not say so, and a strict program shows them as text.",
        )
    if facts.has_field("return-path"):
        yield charge(
            "headers.return-path",
            "The mail came with a Return-Path field, which only the receiving server may add"
            " (RFC 5321 4.4).",
        )


def _judge_octets(facts: MailFacts, is_smtputf8: bool) -> Iterator[ChargedFinding]:
    if facts.raw_8bit_fields and not is_smtputf8:
        yield charge(
            "headers.raw-8bit",
            f"Letters outside ASCII stand unencoded in: {enumerate_some(facts.raw_8bit_fields)};"
            " some receivers refuse that, others show wrong letters.",
        )
    if facts.header_size > LARGE_HEADER:
        yield charge(
            "headers.large",
            f"The header has {facts.header_size // 1024} KiB; many servers refuse or cut one that"
            " large.",
        )
