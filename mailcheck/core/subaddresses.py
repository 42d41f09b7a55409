"""Inbox addresses: ``dev-<id>+<tag>@<inbox domain>``, and what may be a tag.

The tag is the subaddress (RFC 5233): compared without case, returned as it was written.
"""

from mailcheck.core.addresses import MAX_LOCAL_PART, Mailbox, is_dot_atom
from mailcheck.core.identifiers import SHORT_ID_LENGTH, RandomBytes, new_short_id

SEPARATOR = "+"
INBOX_PREFIX = "dev-"
UNTAGGED = ""

MAX_TAG = MAX_LOCAL_PART - len(INBOX_PREFIX) - SHORT_ID_LENGTH - len(SEPARATOR)
"""46 octets: what RFC 5321 4.5.3.1.1 leaves beside the mailbox name."""


def new_mailbox_name(random_bytes: RandomBytes) -> str:
    """Make the local part of a new inbox."""
    return INBOX_PREFIX + new_short_id(random_bytes)


def split_subaddress(local_part: str) -> tuple[str, str]:
    """Split a local part into mailbox name (folded) and tag (as it was written)."""
    mailbox_name, _, tag = local_part.partition(SEPARATOR)
    return mailbox_name.lower(), tag


def join_subaddress(mailbox_name: str, tag: str, domain: str) -> str:
    """Write the address of a tag in an inbox; the bare inbox address for no tag."""
    local_part = f"{mailbox_name}{SEPARATOR}{tag}" if tag else mailbox_name
    return str(Mailbox(local_part, domain))


def fold_tag(tag: str) -> str:
    """Give the form in which two tags are compared."""
    return tag.casefold()


def explain_bad_tag(tag: str) -> str | None:
    """Say why a text can't be a tag, or nothing when it can.

    Empty stands for "untagged" and is fine.
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
