"""Findings about who a mail says it is from."""

import re
from collections.abc import Iterator

from mailcheck.checks.deliverability.report import Area, ChargedFinding
from mailcheck.checks.mail_quality.facts import Author, MailFacts
from mailcheck.checks.mail_quality.host_names import normalize_host
from mailcheck.checks.mail_quality.known_hosts import is_freemail, owner_of
from mailcheck.checks.mail_quality.wording import enumerate_some, error, note, quote, warning

_HEADERS = Area.HEADERS
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
        yield error(
            _HEADERS,
            "headers.from-missing",
            "The mail has no From field, so nobody sees who it is from, and large receivers refuse"
            " it.",
            "Let your program write a From field with one address of your own domain.",
        )
    elif not facts.author_domains:
        yield error(
            _HEADERS,
            "headers.from-unreadable",
            "The From field holds no mail address with a domain name, so no receiver can check"
            " who the mail is from.",
            "Write the From field as: Your Name <you@your-domain.example>.",
        )


def _judge_number(facts: MailFacts) -> Iterator[ChargedFinding]:
    if facts.author_fields > 1:
        yield error(
            _HEADERS,
            "headers.from-repeated",
            f"The mail has {facts.author_fields} From fields, a trick of forgers; Gmail and others"
            " refuse such mail.",
            "Find out which program adds the second From field, and leave one.",
        )
    elif len(facts.author_domains) > 1:
        yield warning(
            _HEADERS,
            "headers.from-several-domains",
            "The From field names authors of several domains"
            f" ({enumerate_some(facts.author_domains)}), which DMARC can't judge; many receivers"
            " refuse it.",
            "Name one author in From, and the others in Reply-To or Cc.",
        )
    elif len(facts.authors) > 1 and not facts.sender_address:
        yield note(
            _HEADERS,
            "headers.sender-missing",
            "The mail has several authors and no Sender field, which has to say who of them sent"
            " it (RFC 5322 3.6.2).",
            "Name one author in From, or add a Sender field.",
        )


def _judge_name(author: Author) -> Iterator[ChargedFinding]:
    match = _ADDRESS.search(author.display_name)
    shown = normalize_host(match[1]) if match else ""
    if shown and author.domain and owner_of(shown) != owner_of(author.domain):
        yield warning(
            _HEADERS,
            "headers.name-shows-address",
            f"The sender's name shows an address at {quote(shown)}, but the mail is from"
            f" {quote(author.domain)}; filters take that for a forgery.",
            "Put a name there, and no mail address.",
        )


def _judge_replies(facts: MailFacts) -> Iterator[ChargedFinding]:
    domain = normalize_host(facts.reply_to_address.rpartition("@")[2])
    if domain and is_freemail(domain) and domain not in facts.author_domains:
        yield warning(
            _HEADERS,
            "headers.reply-to-freemail",
            f"Answers go to a free mailbox at {domain}, another domain than the sender's; filters"
            " know that from fraud.",
            "Take answers at an address of the domain in From.",
        )
    local_part = facts.author_address.rpartition("@")[0]
    if _NO_REPLY.search(local_part) and not facts.reply_to_address:
        yield note(
            _HEADERS,
            "headers.no-reply",
            "The sender's address says that nobody reads answers; people who answer and are"
            " ignored mark mail as spam sooner.",
            "Add a Reply-To field with an address that somebody reads.",
        )
