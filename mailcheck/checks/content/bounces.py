"""Bounces: delivery status notifications (RFC 3464, RFC 6533) about mails."""

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from mailcheck.checks.content.decoding import end_lines
from mailcheck.checks.content.header.fields import HeaderSection, parse_moment, split_header
from mailcheck.core.instants import Instant

STATUS_TYPES = frozenset(("message/delivery-status", "message/global-delivery-status"))
"""Media types of the part with the results for the recipients."""

RETURNED_TYPES = frozenset(
    (
        *("message/rfc822", "message/global", "message/rfc822-headers", "message/global-headers"),
        *("text/rfc822-headers", "text/rfc822"),
    )
)
"""Media types of the part with the returned mail or its header."""

MAX_STATUS = 256 * 1024
"""Maximum number of bytes of a status part, and of a returned header, that are read."""

MAX_RECIPIENTS = 100
"""Maximum number of recipients that are read."""

MAX_FIELDS = 50
"""Maximum number of fields of one recipient. RFC 3464 defines 10."""

MAX_VALUE = 2_000
"""Maximum number of characters of a value. Replies of servers may have several lines."""

TITLES: Mapping[str, str] = {
    "failed": "Not delivered",
    "delayed": "Delayed",
    "delivered": "Delivered",
    "relayed": "Passed on to a server that sends no notifications",
    "expanded": "Delivered to the members of a list",
}
"""The actions of RFC 3464 2.3.3, with their titles."""

_MEANINGS: Mapping[str, str] = {
    "1.1": "The mailbox does not exist.",
    "1.2": "The domain does not exist or takes no mail.",
    "1.3": "The address is not valid.",
    "1.6": "The mailbox has moved, and there is no forwarding address.",
    "1.8": "The domain of the sender does not exist.",
    "1.10": "The domain accepts no mail (null MX).",
    "2.1": "The mailbox is disabled.",
    "2.2": "The mailbox is full.",
    "2.3": "The mail is too large for the mailbox.",
    "3.2": "The receiving system accepts no mail at the moment.",
    "3.4": "The mail is too large for the receiving system.",
    "4.1": "The receiving server does not answer.",
    "4.2": "The connection to the receiving server was lost.",
    "4.3": "A DNS lookup failed.",
    "4.4": "The mail could not be routed.",
    "4.6": "The mail runs in a loop.",
    "4.7": "The mail could not be delivered in time.",
    "5.3": "The mail has too many recipients.",
    "6.1": "The receiving system does not support the content.",
    "7.1": "The receiving system rejects the mail by its policy.",
    "7.8": "The user name or the password of the sending server is wrong.",
    "7.20": "No DKIM signature passes.",
    "7.23": "SPF fails.",
    "7.25": "The sending address has no valid reverse DNS.",
    "7.26": "Neither SPF nor DKIM passes.",
    "7.27": "The domain of the sender accepts no mail (null MX).",
    "7.28": "The sender sends too much mail.",
}
"""Subject and detail of enhanced status codes (RFC 3463, and its registry at IANA)."""

_SUBJECTS: Mapping[str, str] = {
    "1": "There is a problem with the address.",
    "2": "There is a problem with the mailbox.",
    "3": "There is a problem with the receiving system.",
    "4": "There is a problem with the network or the routing.",
    "5": "The servers disagree about the protocol.",
    "6": "There is a problem with the content.",
    "7": "The mail is rejected for security or by policy.",
}
"""Meanings of the subjects of enhanced status codes, for other details (RFC 3463 3)."""


_BLANK = re.compile(rb"\n\s*\n")
_CODE = re.compile(r"\b[245]\.(?P<subject>\d{1,3})\.(?P<detail>\d{1,3})\b")


class FailedRecipient(Struct, frozen=True):
    """The result of the mail to one recipient. Unknown parts are empty.

    ``reply`` is the reply of the server ``server``, and ``meaning`` explains ``code``, an enhanced
    status code.
    """

    address: str
    title: str
    code: str
    meaning: str
    reply: str
    server: str


class ReturnedMail(Struct, frozen=True):
    """The mail that a bounce is about. Unknown parts are empty."""

    subject: str
    sent_at: Instant | None
    message_id: str


class Bounce(Struct, frozen=True):
    """A delivery status notification. ``reporter`` is the server that wrote it."""

    recipients: tuple[FailedRecipient, ...]
    reporter: str
    mail: ReturnedMail | None

    @property
    def title(self) -> str:
        """The result, if all recipients have the same one."""
        titles = {recipient.title for recipient in self.recipients}
        return titles.pop() if len(titles) == 1 else "Delivery report"


def read_bounce(status: bytes, returned: bytes = b"") -> Bounce | None:
    """Return the bounce in a status part, or `None` if it names no recipient.

    :param returned: the part with the returned mail, or its header.
    """
    blocks = _BLANK.split(end_lines(status[:MAX_STATUS]).strip(), MAX_RECIPIENTS + 1)
    sections = [_fields(block) for block in blocks[: MAX_RECIPIENTS + 1]]
    groups = [section for section in sections if _address(section)]
    if not groups:
        return None
    mail = _fields(end_lines(returned[:MAX_STATUS]).lstrip())
    return Bounce(
        tuple(map(_recipient, groups[:MAX_RECIPIENTS])),
        _typed(_text(sections[0], "reporting-mta")),
        _returned_mail(mail) if mail.fields else None,
    )


def _fields(block: bytes) -> HeaderSection:
    return split_header(block, 0, len(block), MAX_FIELDS)


def _text(section: HeaderSection, *names: str) -> str:
    """Return the first value that is not empty of the fields with these names, in one line."""
    found = (section.find(name) for name in names)
    texts = (" ".join(one.decode().split())[:MAX_VALUE] for one in found if one is not None)
    return next(filter(None, texts), "")


def _typed(value: str) -> str:
    """Return a value without its type: ``rfc822; a@example.com`` (RFC 3464 2.1.2)."""
    return value.partition(";")[2].strip() or value


def _address(section: HeaderSection) -> str:
    return _typed(_text(section, "original-recipient", "final-recipient"))


def _recipient(section: HeaderSection) -> FailedRecipient:
    reply = _typed(_text(section, "diagnostic-code"))
    found = _CODE.search(_text(section, "status")) or _CODE.search(reply)
    action = _text(section, "action").lower().partition(" ")[0]
    subject, detail = (found["subject"], found["detail"]) if found else ("", "")
    return FailedRecipient(
        _address(section),
        TITLES.get(action, TITLES["failed"]),
        found[0] if found else "",
        _MEANINGS.get(f"{subject}.{detail}") or _SUBJECTS.get(subject, ""),
        reply,
        server=_typed(_text(section, "remote-mta")),
    )


def _returned_mail(section: HeaderSection) -> ReturnedMail:
    sent_at = parse_moment(_text(section, "date"))
    return ReturnedMail(_text(section, "subject"), sent_at, _text(section, "message-id"))


def find_parts(content_types: Sequence[str]) -> tuple[int, int | None] | None:
    """Return the indexes of the status part and of the returned mail, which may be missing.

    It is `None` if the mail has no status part, and is therefore not a bounce.
    """
    of_status = (n for n, one in enumerate(content_types) if one in STATUS_TYPES)
    of_mail = (n for n, one in enumerate(content_types) if one in RETURNED_TYPES)
    status = next(of_status, None)
    return None if status is None else (status, next(of_mail, None))
