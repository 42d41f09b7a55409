"""A small sign-up application with an outbox: it keeps a mail until a mail server has taken it."""

import smtplib
from collections.abc import Callable
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.utils import make_msgid


@dataclass
class SignUp:
    """Somebody who wants an account: what the application knows of the mail to him.

    ``state`` is ``waiting``, ``sent`` or ``failed``; ``answers`` are those of the server, one for
    each try: a code, or 0 where the connection ended without one.
    """

    mail: EmailMessage
    state: str = "waiting"
    answers: list[int] = field(default_factory=list)


class Application:
    """Signs people up: ``connect`` opens a connection to the mail server."""

    def __init__(self, connect: Callable[[], smtplib.SMTP]) -> None:
        self._connect = connect
        self.outbox: list[SignUp] = []

    def sign_up(self, address: str) -> SignUp:
        """Write the mail that asks whether the address is right, and try to send it."""
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
        """Try to send what waits: 4xx and a lost connection leave it waiting, 5xx gives it up."""
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
