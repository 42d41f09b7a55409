"""What a mail itself says for the receivers' checklists; the rest comes from the verdicts."""

from collections.abc import Set

from mailcheck.checks.mail_quality.facts import MailFacts
from mailcheck.checks.mail_quality.known_hosts import is_freemail, is_gmail
from mailcheck.checks.mail_quality.receiver_rules import Evidence
from mailcheck.checks.mail_quality.unsubscribe_findings import (
    OneClick,
    find_one_click,
    is_bulk_looking,
)


def is_rfc5322_format(facts: MailFacts) -> bool:
    """Tell whether a mail has what RFC 5322 3.6 asks for: one From with a mailbox, a readable
    Date, nothing twice that may stand once, no line over 998 octets.
    """
    has_author = facts.author_fields == 1 and bool(facts.author_domains)
    has_date = facts.date is not None and facts.date.instant is not None
    return has_author and has_date and not facts.repeated_fields and not facts.long_lines


def start_evidence(facts: MailFacts, signed_fields: Set[str] | None) -> Evidence:
    """Fill in what the mail says; ``dataclasses.replace`` adds what the checks found.

    :param signed_fields: as for `find_one_click`.
    """
    one_click = find_one_click(facts, signed_fields)
    return Evidence(
        is_format_valid=is_rfc5322_format(facts),
        claims_gmail=any(map(is_gmail, facts.author_domains)),
        claims_freemail=any(map(is_freemail, facts.author_domains)),
        is_bulk_looking=is_bulk_looking(facts),
        has_one_click=None if one_click is OneClick.UNDETERMINED else one_click is OneClick.WORKS,
        has_unsubscribe_link=facts.unsubscribe.body_links > 0,
        has_list_unsubscribe=bool(facts.unsubscribe.uris),
    )
