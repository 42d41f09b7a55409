"""Mail from the daemon to its own inboxes, such as a sample mail for a new account."""

from collections.abc import Callable

from msgspec import Struct
from twisted.internet.defer import Deferred

from mailcheck.core.accounts import Account
from mailcheck.core.addresses import Mailbox, join_subaddress, parse_mailbox
from mailcheck.core.identifiers import DeliveryId, new_short_id
from mailcheck.core.instants import SECOND
from mailcheck.core.messages import Envelope
from mailcheck.operations.inbox.receive_mail import OWN_SESSION, ReceiveMail
from mailcheck.ports.clocks import ClockAndRandomness

SENDER = "hello"
"""Local part of the sender of sample mails."""

_TEXT = """\
Hello,

this is a sample mail, received like any other.

Your code is {code}.

Or confirm your address here:
{link}

Your software's mails will look the same here: send one to
{address}
"""

_HTML = """\
<!doctype html>
<html>
<body style="margin: 0; padding: 24px; background: #f3f5f8; font-family: Arial, sans-serif">
<table role="presentation" width="520" align="center" cellpadding="0" cellspacing="0" \
style="max-width: 100%; background: #ffffff; border-radius: 8px">
<tr><td style="padding: 32px; color: #1d2733; font-size: 16px; line-height: 24px">
<h1 style="margin: 0 0 16px; font-size: 22px; line-height: 28px">Confirm your address</h1>
<p style="margin: 0 0 16px">This is a sample mail, received like any other. Your code is</p>
<p style="margin: 0 0 16px; font-size: 30px; letter-spacing: 6px; font-weight: bold">{code}</p>
<p style="margin: 0 0 24px"><a href="{link}" style="display: inline-block; padding: 12px 20px; \
background: #1f5fbf; color: #ffffff; border-radius: 6px; text-decoration: none">\
Confirm your address</a></p>
<p style="margin: 0; font-size: 14px; color: #5a6675">Your software's mails will look the same \
here: send one to {address}</p>
</td></tr>
</table>
</body>
</html>
"""


class SendInternalMail(Struct, frozen=True, eq=False):
    """Passes mail from the daemon to the receiver, for an inbox of this server."""

    receiver: ReceiveMail
    domain: str

    async def send(
        self, mailbox_name: str, tag: str, local_part: str, write: Callable[[str, str], bytes]
    ) -> DeliveryId:
        """Render a mail with ``write`` and send it to an inbox.

        ``write`` gets the addresses of recipient and sender.

        :raises InboxFull: the inbox is full.
        :raises OutOfSpace: the disk is short of space.
        """
        address = join_subaddress(mailbox_name, tag, self.domain)
        sender = str(Mailbox(local_part, self.domain))
        accepted = self.receiver.accept_recipient(OWN_SESSION, sender, parse_mailbox(address))
        recipient = await accepted if isinstance(accepted, Deferred) else accepted
        raw_message = write(address, sender)
        return await self.receiver.deliver(OWN_SESSION, Envelope(sender, (recipient,)), raw_message)


class SendSample:
    """Sends a sample mail with text, HTML, a link and a code."""

    def __init__(self, receiver: ReceiveMail, domain: str, clocks: ClockAndRandomness) -> None:
        self._own = SendInternalMail(receiver, domain)
        self._domain = domain
        self._now = clocks.now
        self._random_bytes = clocks.random_bytes

    async def send(self, account: Account, tag: str) -> DeliveryId:
        """Send a sample mail to the inbox of an account; ``tag`` is valid or empty.

        :raises InboxFull: the inbox is full.
        :raises OutOfSpace: the disk is short of space.
        """
        return await self._own.send(account.mailbox_name, tag, SENDER, self._write)

    def _write(self, address: str, sender: str) -> bytes:
        number = int.from_bytes(self._random_bytes(4)) % 1_000_000
        token = new_short_id(self._random_bytes)
        words = {
            "code": f"{number:06}",
            "link": f"https://example.com/confirm?token={token}",
            "address": address,
        }
        # Imported here because few daemons ever send a mail.
        from email.message import EmailMessage
        from email.policy import SMTP
        from email.utils import formatdate

        mail = EmailMessage(SMTP)
        mail["From"] = f"mailcheck <{sender}>"
        mail["To"] = address
        mail["Subject"] = "Confirm your address (a sample)"
        mail["Date"] = formatdate(self._now() / SECOND)
        mail["Message-ID"] = f"<{token}@{self._domain}>"
        mail.set_content(_TEXT.format(**words))
        mail.add_alternative(_HTML.format(**words), subtype="html")
        return mail.as_bytes()
