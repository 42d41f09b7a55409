"""The text that a new user sees at the first start: addresses, and commands to try."""

from collections.abc import Sequence
from contextlib import suppress

from msgspec import Struct

from mailcheck.api.urls import PublicUrls
from mailcheck.core.network_addresses import parse_listen_address
from mailcheck.daemon.first_start import Shown

_TEXT = """
mailcheck is ready.

  inbox        {address}
               any tag works: {tagged}
  limits       {per_minute} requests a minute, {per_day} a day, mail is kept {hours:g} hours
               more for one key: mailcheck key issue {name} --per-minute 6000 --per-day 1000000
  mail         {mail}
  submission   {submission}
  IMAP         {imap}
  dashboard    {dashboard}
               sign in as {name}, password: {password}
  web          {api}
  API key      {key}

Try it in another terminal, in this folder:

  KEY=$(cat {key_path}); API={api}

  # 1. take an address and its cursor, before the mail is sent
  CURSOR=$(curl -s -H "X-API-Key: $KEY" "$API/inbox/address?tag=signup" |
           sed 's/.*"cursor":"//; s/".*//')

  # 2. have a program send a mail to it
  swaks --server {server} --from shop@example.com --to {tagged} \\
        --header 'Subject: Welcome' --body 'Your code is 482913: https://example.com/confirm?t=7f3a'

  # 3. wait for it: code and link, as soon as it is there
  curl -s -H "X-API-Key: $KEY" "$API/inbox/wait?tag=signup&after=$CURSOR"

"""

EXAMPLE_TAG = "signup"


class FirstSteps(Struct, frozen=True):
    """Implements the port `mailcheck.daemon.first_start.FirstSteps`.

    ``mail``, ``submission`` and ``imap`` are listening addresses, as ``host:port``.
    """

    mail: Sequence[str]
    submission: Sequence[str]
    imap: Sequence[str]
    urls: PublicUrls
    per_minute: int
    per_day: int
    retention_hours: float

    def __call__(self, address: str, key: Shown, name: str, password: Shown) -> str:
        """Return the text, with the key and the password only if they may be printed."""
        mailbox, _, domain = address.partition("@")
        return _TEXT.format(
            address=address,
            tagged=f"{mailbox}+{EXAMPLE_TAG}@{domain}",
            mail=", ".join(self.mail) or "not received",
            server=_reachable(self.mail),
            submission=", ".join(self.submission) or "not offered",
            imap=", ".join(self.imap) or "not offered",
            dashboard=f"{self.urls.public_url}/",
            name=name,
            password=_write(password),
            api=self.urls.base_url,
            per_minute=self.per_minute,
            per_day=self.per_day,
            hours=self.retention_hours,
            key=_write(key),
            key_path=key.path,
        )


def _write(shown: Shown) -> str:
    if shown.path is None:
        return "as configured"
    return f"{shown.secret} (also in {shown.path})" if shown.secret else f"in {shown.path}"


def _reachable(addresses: Sequence[str]) -> str:
    """Return an address to which a program on this machine can connect."""
    for address in addresses:
        with suppress(ValueError):
            url = parse_listen_address(address).url
            if url is not None:
                return url.removeprefix("http://")
    return "HOST:PORT"
