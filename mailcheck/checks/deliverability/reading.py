"""Parsing of a mail for its score. Runs in a child process, so all results can be pickled."""

import re

from msgspec import Struct

from mailcheck.checks.bimi.selector import LogoSelector, read_logo_selector
from mailcheck.checks.content.header.fields import split_header
from mailcheck.checks.deliverability.identities import Identities
from mailcheck.checks.dkim.arc import ArcChain, read_chain
from mailcheck.checks.dkim.dkim2 import Dkim2OfMail, read_dkim2
from mailcheck.checks.dkim.signature_headers import read_signatures
from mailcheck.checks.quality.facts import MailFacts
from mailcheck.checks.quality.reading import read_mail

MAX_CLAIMS = 20
"""Maximum number of Authentication-Results fields that are read."""

# The authserv-id is the first token (RFC 8601 2.2).
_AUTHSERV_ID = re.compile(rb"[ \t\r\n]*+([!-:<-~]++)")


class MailReading(Struct, frozen=True):
    """A parsed mail. ``claimed_by`` are the authserv-ids of its Authentication-Results fields.

    The sender may have forged these fields, so their results are not read.
    """

    facts: MailFacts
    identities: Identities
    chain: ArcChain
    dkim2: Dkim2OfMail
    logo_selector: LogoSelector
    claimed_by: tuple[str, ...]


def read_mail_for_score(raw_message: bytes) -> MailReading:
    """Parse a mail of any bytes, before any lookup."""
    facts = read_mail(raw_message)
    signatures, _ = read_signatures(raw_message)
    return MailReading(
        facts=facts,
        identities=Identities(facts.author_domains, signatures, facts.author_fields),
        chain=read_chain(raw_message),
        dkim2=read_dkim2(raw_message),
        logo_selector=read_logo_selector(raw_message),
        claimed_by=_read_claims(raw_message),
    )


def _read_claims(raw_message: bytes) -> tuple[str, ...]:
    fields = split_header(raw_message, 0, len(raw_message)).fields
    bodies = [f.body for f in fields if f.name.lower() == "authentication-results"][:MAX_CLAIMS]
    found = (_AUTHSERV_ID.match(body) for body in bodies)
    return tuple(dict.fromkeys(match[1].decode("ascii").lower() for match in found if match))
