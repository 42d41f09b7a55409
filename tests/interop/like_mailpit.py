"""A daemon in the place of Mailpit or MailHog, started as the guides say."""

import os
import shlex
import smtplib
import sys
from collections.abc import Iterable
from email.message import EmailMessage
from pathlib import Path

from tests.docs.blocks import read_blocks
from tests.servers.daemon import Daemon, free_ports

ROOT = Path(__file__).parents[2]
GUIDES = ("move-from-mailpit.md", "move-from-mailhog.md")


class LikeMailpit(Daemon):
    """A daemon that was started with the environment of Mailpit's images."""

    def __init__(self, folder: Path) -> None:
        self.api_port, self.mail_port = free_ports(2)
        mailpit = {
            "MP_UI_BIND_ADDR": f"127.0.0.1:{self.api_port}",
            "MP_SMTP_BIND_ADDR": f"127.0.0.1:{self.mail_port}",
            "MP_SMTP_AUTH_ACCEPT_ANY": "1",
            "MP_SMTP_AUTH_ALLOW_INSECURE": "1",
        }
        program, *words = shlex.split(started_as())
        super().__init__(
            folder,
            environment={**os.environ, **mailpit},
            command=[str(Path(sys.executable).with_name(program)), *words],
        )

    @property
    def url(self) -> str:
        """The URL that clients are given."""
        return f"http://127.0.0.1:{self.api_port}"

    def deliver(self, mails: Iterable[EmailMessage]) -> None:
        """Send mails as a client with any name and password."""
        with smtplib.SMTP("127.0.0.1", self.mail_port, timeout=60) as smtp:
            smtp.login("any", "password")
            for mail in mails:
                smtp.send_message(mail)


def started_as() -> str:
    """Return the command of both guides."""
    commands = {
        block.text.strip()
        for name in GUIDES
        for block in read_blocks(ROOT / "docs" / "how-to" / name)
        if block.runner.endswith("/test_mailpit_clients.py")
    }
    (command,) = commands
    return command
