"""Findings about the header of a mail."""

from collections.abc import Iterator

from mailcheck.checks.deliverability.report import Area, ChargedFinding
from mailcheck.checks.mail_domains import is_local_name
from mailcheck.checks.mail_quality.author_findings import judge_author
from mailcheck.checks.mail_quality.facts import MailFacts
from mailcheck.checks.mail_quality.subject_findings import judge_subject
from mailcheck.checks.mail_quality.wording import enumerate_some, note, quote, warning
from mailcheck.core.instants import DAY, HOUR, Instant

FUTURE = 2 * HOUR
"""How far ahead of us a Date may be: clocks and time zones are set wrong by less."""

PAST = DAY
"""How old a Date may be: mail that waited in a queue over night is common."""

LARGE_HEADER = 64 * 1024
"""Octets of a header that come near where Postfix cuts (header_size_limit, 100 KiB)."""

_HEADERS = Area.HEADERS


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
    fix = "Let your program write the time of sending, like: Mon, 05 Jan 2026 10:00:00 +0000."
    if date is None:
        meaning = "The mail has no Date field, which every mail must have; some receivers refuse it"
        yield warning(_HEADERS, "headers.date-missing", f"{meaning}.", fix)
        return
    if date.instant is None:
        meaning = f"The Date field {date.problem} ({quote(date.text)}), so the mail has no time."
        yield warning(_HEADERS, "headers.date-unreadable", meaning, fix)
    elif date.problem:
        meaning = f"The Date field {date.problem} ({quote(date.text)}); some programs misread it."
        yield note(_HEADERS, "headers.date-form", meaning, fix)
    clock = "Set the clock and time zone of the sending server (NTP), and the date when you send."
    if date.instant is not None and date.instant - received_at > FUTURE:
        meaning = f"The Date field lies in the future ({quote(date.text)}), as spam's often does."
        yield warning(_HEADERS, "headers.date-future", meaning, clock)
    if date.instant is not None and received_at - date.instant > PAST:
        meaning = f"The Date field is more than a day old ({quote(date.text)}); filters mark that."
        yield warning(_HEADERS, "headers.date-old", meaning, clock)


def _judge_message_id(facts: MailFacts) -> Iterator[ChargedFinding]:
    found = facts.message_id
    fix = "Let your program write a unique one that ends in your domain: <unique@your.domain>."
    if found is None:
        meaning = "The mail has no Message-ID, by which programs find answers and duplicates."
        yield warning(_HEADERS, "headers.message-id-missing", meaning, fix)
    elif not found.is_well_formed:
        meaning = f"The Message-ID is malformed ({quote(found.text)}); filters mark that."
        yield warning(_HEADERS, "headers.message-id-malformed", meaning, fix)
    elif not found.domain.startswith("[") and is_local_name(found.domain):
        meaning = f"The Message-ID ends in {quote(found.domain)}, a name only your network knows."
        yield note(_HEADERS, "headers.message-id-local", meaning, fix)


def _judge_fields(facts: MailFacts) -> Iterator[ChargedFinding]:
    repeated = [name for name in facts.repeated_fields if name != "from"]
    if repeated:
        yield warning(
            _HEADERS,
            "headers.repeated",
            f"Fields that may stand once stand several times: {enumerate_some(repeated)}; Gmail"
            " refuses such mail, and programs show different ones.",
            "Find out which program adds them again, and leave one of each.",
        )
    if not (facts.has_field("to") or facts.has_field("cc")):
        yield note(
            _HEADERS,
            "headers.to-missing",
            "The mail names nobody it is to; filters know that from mass mail.",
            "Write the recipient into a To field.",
        )
    if facts.has_field("content-type") and not facts.has_field("mime-version"):
        yield note(
            _HEADERS,
            "headers.mime-version-missing",
            "The mail has MIME parts but does not say so, and a strict program shows them as text.",
            "Add the field: MIME-Version: 1.0.",
        )
    if facts.has_field("return-path"):
        yield note(
            _HEADERS,
            "headers.return-path",
            "The mail came with a Return-Path field, which only the receiving server may add"
            " (RFC 5321 4.4).",
            "Give the return address to your mail server as the envelope sender instead.",
        )


def _judge_octets(facts: MailFacts, is_smtputf8: bool) -> Iterator[ChargedFinding]:
    if facts.raw_8bit_fields and not is_smtputf8:
        yield warning(
            _HEADERS,
            "headers.raw-8bit",
            f"Letters outside ASCII stand unencoded in: {enumerate_some(facts.raw_8bit_fields)};"
            " some receivers refuse that, others show wrong letters.",
            "Let your program encode them (RFC 2047: =?utf-8?q?...?=), as mail libraries do.",
        )
    if facts.header_size > LARGE_HEADER:
        yield warning(
            _HEADERS,
            "headers.large",
            f"The header has {facts.header_size // 1024} KiB; many servers refuse or cut one that"
            " large.",
            "Look for a program that adds fields again and again, or very long recipient lists.",
        )
