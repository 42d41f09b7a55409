"""One mail on its way in: from MAIL to the reply that ends it."""

from mailcheck.core.addresses import Mailbox
from mailcheck.core.messages import Envelope, Recipient, Session
from mailcheck.smtp.data import MessageBuffer
from mailcheck.smtp.transcript import Transcript


class Transaction:
    """Sender, accepted recipients, and the message as far as it has come.

    ``deadline`` is when it must be complete; ``has_failed`` says that a chunk
    of it was refused.
    """

    __slots__ = (
        "_recipients",
        "_test_addresses",
        "deadline",
        "envelope_sender",
        "has_failed",
        "is_utf8",
        "message",
        "session",
    )

    def __init__(self, session: Session, envelope_sender: str, *, is_utf8: bool) -> None:
        self.session = session
        self.envelope_sender = envelope_sender
        self.is_utf8 = is_utf8
        self.message: MessageBuffer | None = None
        self.deadline = 0.0
        self.has_failed = False
        self._recipients: dict[tuple[str, str], Recipient] = {}
        self._test_addresses: list[bytes] = []

    @property
    def has_chunks(self) -> bool:
        """Tell whether BDAT has begun: no recipient and no DATA may follow (RFC 3030 2)."""
        return self.message is not None

    @property
    def recipients(self) -> tuple[Recipient, ...]:
        """The accepted recipients, each once, in order."""
        return tuple(self._recipients.values())

    @property
    def recipient_count(self) -> int:
        """How many distinct recipients were accepted."""
        return len(self._recipients)

    def has(self, mailbox: Mailbox) -> bool:
        """Tell whether the address was accepted before, in whatever case it was written."""
        return _folded(mailbox) in self._recipients

    def add(self, mailbox: Mailbox, recipient: Recipient) -> None:
        """Take in an accepted recipient."""
        self._recipients[_folded(mailbox)] = recipient
        if recipient.test_id is not None:
            self._test_addresses.append(f"<{recipient.address.lower()}>".encode())

    def envelope(self, transcript: Transcript) -> Envelope:
        """Freeze sender and recipients; with the transcript where it is for a test."""
        if not self._test_addresses:
            return Envelope(self.envelope_sender, self.recipients)
        lines = transcript.lines(self._test_addresses)
        return Envelope(self.envelope_sender, self.recipients, lines)


def _folded(mailbox: Mailbox) -> tuple[str, str]:
    return mailbox.local_part.casefold(), mailbox.domain.casefold().rstrip(".")
