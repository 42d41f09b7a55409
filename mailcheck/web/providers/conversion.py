"""Requests are turned into mails here, in a worker process."""

import hashlib

from msgspec import Struct

from mailcheck.core.errors import InvalidParameter, MailTooLarge
from mailcheck.core.instants import Instant
from mailcheck.core.messages import Posted, SubmittedMail
from mailcheck.web.providers.mime import OutgoingMail, RawMail, write_mail
from mailcheck.web.providers.posted import describe_request
from mailcheck.web.providers.provider import Outcome, Posting, Read, Verify

MAX_TOTAL = 67_108_864
"""Maximum number of bytes of all mails of a request. Files may be repeated in each of them."""


MAX_RECIPIENTS = 1_000
"""Maximum number of recipients of all mails of a request. Each is a message in the inbox."""


class Stamp(Struct, frozen=True):
    """The values that the daemon adds to a mail: time, seed of the Message-ID, and domain."""

    sent_at: Instant
    seed: bytes
    domain: str

    def message_id(self, number: int) -> str:
        """Return the Message-ID of a mail of the request, without brackets."""
        digest = hashlib.sha256(self.seed + str(number).encode()).hexdigest()[:32]
        return f"{digest}@{self.domain}"


class Prepared(Struct, frozen=True):
    """A mail that is ready to be stored. ``shown`` are values for the answer."""

    mail: SubmittedMail
    shown: dict[str, str]


def prepare(
    provider: str, secret: str, verify: Verify | None, read: Read, posting: Posting, stamp: Stamp
) -> list[Prepared | Outcome]:
    """Return the mails of a request. A mail that is rejected separately has an `Outcome`.

    :raises WrongSignature: the request is not signed with the key.
    :raises InvalidParameter: the whole request is rejected, or has too many recipients.
    :raises MailTooLarge: all mails together are too large.
    """
    if verify is not None:
        verify(posting, secret)
    found: list[Prepared | Outcome] = []
    total = recipients = 0
    for number, one in enumerate(read(posting)):
        if isinstance(one, InvalidParameter):
            found.append(Outcome(one))
            continue
        recipients += len(one.mail.recipients)
        if recipients > MAX_RECIPIENTS:
            raise InvalidParameter(
                "recipients",
                f"a request may have {MAX_RECIPIENTS:,} recipients in all: send fewer at once",
            )
        message_id = stamp.message_id(number)
        raw = _bytes_of(one.mail, message_id, stamp)
        total += len(raw)
        if total > MAX_TOTAL:
            raise MailTooLarge(
                f"the mails of this request have more than {MAX_TOTAL:,} bytes: send fewer at once"
            )
        mail = SubmittedMail(
            one.mail.envelope_sender,
            one.mail.recipients,
            raw,
            Posted(provider, describe_request(one.source, secret)),
        )
        found.append(Prepared(mail, {"message_id": message_id, **one.shown}))
    return found


def _bytes_of(mail: OutgoingMail | RawMail, message_id: str, stamp: Stamp) -> bytes:
    if isinstance(mail, RawMail):
        return mail.raw_message
    return write_mail(mail, message_id, stamp.sent_at)
