"""Findings about the subject line; how it is written costs nothing, filters judge it too."""

import re
from collections.abc import Iterator

from mailcheck.checks.deliverability.report import Area, ChargedFinding
from mailcheck.checks.mail_quality.facts import MailFacts
from mailcheck.checks.mail_quality.wording import note, quote, warning

MIN_CAPITALS = 8
"""Letters a subject must have before all capitals are shouting: "OTP", "RE: FAQ" are not."""

MAX_EMOJI = 2
MAX_LENGTH = 150
"""Characters of a subject; lists show 40 to 80 of them."""

_HEADERS = Area.HEADERS
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
        yield warning(
            _HEADERS,
            "headers.subject-missing",
            "The mail has no subject; people and filters take such mail for spam.",
            "Write a subject that says what the mail is about.",
        )
    is_answer = facts.has_field("in-reply-to") or facts.has_field("references")
    if _REPLY.match(subject) and not is_answer:
        yield warning(
            _HEADERS,
            "headers.fake-reply",
            f"The subject looks like an answer or a forward ({quote(subject)}), but the mail"
            " refers to no other; filters know that trick.",
            "Leave out what comes before the subject itself.",
        )
    yield from _judge_style(subject)


def _judge_style(subject: str) -> Iterator[ChargedFinding]:
    fix = "Write the subject as you would write to one person."
    letters = [letter for letter in subject if letter.lower() != letter.upper()]
    if len(letters) >= MIN_CAPITALS and all(map(str.isupper, letters)):
        meaning = "The subject is written in capitals only, as that of much spam is."
        yield note(_HEADERS, "headers.subject-capitals", meaning, fix)
    emoji = count_emoji(subject)
    if emoji > MAX_EMOJI:
        meaning = f"The subject has {emoji} pictures (emoji); some filters and people mark that."
        yield note(_HEADERS, "headers.subject-emoji", meaning, fix)
    if _PUNCTUATION.search(subject):
        meaning = "The subject has more exclamation or question marks than a sentence needs."
        yield note(_HEADERS, "headers.subject-punctuation", meaning, fix)
    if len(subject) > MAX_LENGTH:
        meaning = f"The subject has {len(subject)} characters; mail programs show 40 to 80 of them."
        yield note(_HEADERS, "headers.subject-long", meaning, "Say the main thing first, and less.")
