"""Requests are turned into mails here, in a worker process."""

import hashlib
from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from mailcheck.core.errors import InvalidParameter, MailTooLarge, WorkerDied, WorkTooSlow
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.core.messages import Posted, SubmittedMail
from mailcheck.operations.write_mail import OutgoingMail, RawMail, write_mail
from mailcheck.ports.workers import Worker
from mailcheck.web.providers.posted import describe_request
from mailcheck.web.providers.provider import Outcome, Posting, Read, Verify
from mailcheck.web.site.replies import Reply

Result = TypeVar("Result")

MAX_TOTAL = 67_108_864
"""Maximum number of bytes of all mails of a request. Files may be repeated in each of them."""

MAX_HEADER_SIZE = 500_000
"""Maximum number of characters of all headers of a request. The standard library folds and encodes
60,000 characters a second at worst."""

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
) -> list[Prepared | Outcome] | Reply:
    """Return the mails of a request, or the answer to a question.

    A mail that is rejected separately, or is not stored, has an `Outcome`.

    :raises WrongSignature: the request is not signed with the key.
    :raises ExpectedFailure: the whole request is rejected, or has too many recipients.
    :raises MailTooLarge: all mails together are too large.
    """
    if verify is not None:
        verify(posting, secret)
    asked = read(posting)
    if isinstance(asked, Reply):
        return asked
    found: list[Prepared | Outcome] = []
    size = RequestSize()
    source, described = None, ""
    for number, sending in enumerate(asked):
        if isinstance(sending, InvalidParameter):
            found.append(Outcome(sending))
            continue
        size.add(sending.mail)
        if sending.source is not source:
            source, described = sending.source, describe_request(sending.source, secret)
        message_id = stamp.message_id(number)
        shown = {"message_id": message_id, **sending.shown}
        mail = SubmittedMail(
            sending.mail.envelope_sender,
            sending.mail.recipients,
            _bytes_of(sending.mail, message_id, stamp),
            Posted(provider, described),
        )
        found.append(Prepared(mail, shown) if sending.is_stored else Outcome(None, shown))
    return found


def answer_question(
    secret: str, verify: Verify | None, answer: Callable[[Posting], Reply], posting: Posting
) -> Reply:
    """Return the answer to a question about the account.

    :raises WrongSignature: the request is not signed with the key.
    """
    if verify is not None:
        verify(posting, secret)
    return answer(posting)


class RequestSize:
    """The size of all mails of a request, which is limited before each is written."""

    def __init__(self) -> None:
        self._bodies = self._headers = self._recipients = 0

    def add(self, mail: OutgoingMail | RawMail) -> None:
        """Count a mail.

        :raises InvalidParameter: there are too many recipients.
        :raises MailTooLarge: all mails together are too large.
        """
        self._recipients += len(mail.recipients)
        if self._recipients > MAX_RECIPIENTS:
            raise InvalidParameter(
                "recipients",
                f"a request may have {MAX_RECIPIENTS:,} recipients in all: send fewer at once",
            )
        if isinstance(mail, RawMail):
            self._bodies += len(mail.raw_message)
        else:
            self._bodies += mail.body_size
            self._headers += mail.header_size
        if self._headers > MAX_HEADER_SIZE:
            raise MailTooLarge(
                f"the headers of the mails of this request have more than {MAX_HEADER_SIZE:,} "
                "characters: send fewer at once"
            )
        if self._bodies > MAX_TOTAL:
            raise MailTooLarge(
                f"the mails of this request have more than {MAX_TOTAL:,} bytes: send fewer at once"
            )


class Conversion(Struct, frozen=True, eq=False):
    """Turns requests into mails, in a process that reads no mail and whose memory is limited.

    Accounts take turns. A request that takes too long or needs too much memory delays only those
    of other senders.
    """

    worker: Worker

    async def run(self, call: Callable[[], Result], account_id: AccountId) -> Result:
        """Return the result of a conversion.

        :raises MailTooLarge: it takes too long, or needs too much memory.
        """
        try:
            return await self.worker.run(call, account_id)
        except (WorkTooSlow, WorkerDied, MemoryError):
            raise MailTooLarge(
                "the request is too large: send fewer or smaller mails at once"
            ) from None


def _bytes_of(mail: OutgoingMail | RawMail, message_id: str, stamp: Stamp) -> bytes:
    if isinstance(mail, RawMail):
        return mail.raw_message
    return write_mail(mail, message_id, stamp.sent_at)
