"""A small sign-up application with an outbox, which keeps a mail until a server accepts it."""

import smtplib
from collections.abc import Callable
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.utils import make_msgid


@dataclass
class SignUp:
    """A person who signs up, and the state of the mail to that person.

    ``state`` is ``waiting``, ``sent`` or ``failed``. ``answers`` has the server's last code of each
    attempt, or 0 if the connection ended without one.
    """

    mail: EmailMessage
    state: str = "waiting"
    answers: list[int] = field(default_factory=list)


class Application:
    """The application; ``connect`` opens a connection to the mail server."""

    def __init__(self, connect: Callable[[], smtplib.SMTP]) -> None:
        self._connect = connect
        self.outbox: list[SignUp] = []

    def sign_up(self, address: str) -> SignUp:
        """Create the mail that confirms the address, and try to send it."""
        mail = EmailMessage()
        mail["From"] = "Shop <shop@example.com>"
        mail["To"] = address
        mail["Subject"] = "Confirm your address"
        mail["Message-ID"] = make_msgid(domain="example.com")
        mail.set_content("Your code is 482913\n")
        waiting = SignUp(mail)
        self.outbox.append(waiting)
        self.try_all()
        return waiting

    def try_all(self) -> None:
        """Try to send waiting mails: 4xx and a lost connection keep a mail, 5xx fails it."""
        for one in self.outbox:
            if one.state == "waiting":
                answer = self._send(one.mail)
                one.answers.append(answer)
                one.state = {2: "sent", 5: "failed"}.get(answer // 100, "waiting")

    def _send(self, mail: EmailMessage) -> int:
        try:
            with self._connect() as smtp:
                smtp.send_message(mail)
        except smtplib.SMTPRecipientsRefused as refused:
            ((code, _),) = refused.recipients.values()
            return code
        except smtplib.SMTPResponseException as refused:
            return refused.smtp_code
        except (smtplib.SMTPServerDisconnected, OSError):
            return 0
        return 250
