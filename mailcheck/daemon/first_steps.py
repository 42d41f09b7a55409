"""What the daemon tells a newcomer: where it listens, and commands that work as they stand."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_TEXT = """
mailcheck is ready.

  inbox        {address}
               any tag works: {tagged}
  limits       {per_minute} requests a minute, {per_day} a day, mail is kept {hours:g} hours
  mail         {mail}
  submission   {submission}
  web          {api}
  API key      {key}

Try it in another terminal, in this folder:

  KEY=$(cat {key_path}); API={api}

  # 1. take an address and its cursor, before the mail is sent
  CURSOR=$(curl -s -H "X-API-Key: $KEY" "$API/inbox/address?tag=signup" |
           sed 's/.*"cursor":"//; s/".*//')

  # 2. have a program send a mail to it
  swaks --server {mail} --from shop@example.com --to {tagged} \\
        --header 'Subject: Welcome' --body 'Your code is 482913: https://example.com/confirm?t=7f3a'

  # 3. wait for it: code and link, as soon as it is there
  curl -s -H "X-API-Key: $KEY" "$API/inbox/wait?tag=signup&after=$CURSOR"

"""

EXAMPLE_TAG = "signup"


@dataclass(frozen=True, slots=True)
class FirstSteps:
    """Fills the port `mailcheck.daemon.first_start.FirstSteps`."""

    mail: Sequence[str]
    submission: Sequence[str]
    base_url: str
    per_minute: int
    per_day: int
    retention_hours: float

    def __call__(self, address: str, key_path: Path, secret: str | None) -> str:
        """Write the first steps; the key itself only where it may be shown."""
        mailbox, _, domain = address.partition("@")
        return _TEXT.format(
            address=address,
            tagged=f"{mailbox}+{EXAMPLE_TAG}@{domain}",
            mail=", ".join(self.mail) or "not received",
            submission=", ".join(self.submission) or "not offered",
            api=self.base_url,
            per_minute=self.per_minute,
            per_day=self.per_day,
            hours=self.retention_hours,
            key=f"{secret} (also in {key_path})" if secret else f"in {key_path}",
            key_path=key_path,
        )
