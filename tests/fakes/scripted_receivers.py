"""Receivers of webhooks with scripted answers."""

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from standardwebhooks import Webhook
from twisted.internet.defer import Deferred, succeed

from mailcheck.config.options import Config
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.instants import SECOND
from mailcheck.core.webhooks import Attempt
from mailcheck.ports.probes import Post

TAKEN = Attempt(200)
BROKEN = Attempt(500, "it answered 500")
OWN_HOST = "mailcheck.example"


@dataclass
class ScriptedReceivers:
    """Implements `WebhookDialer`: each request gets the next of ``answers``, then 200.

    With ``hangs`` the answers wait for the test.
    """

    posts: list[Post] = field(default_factory=list)
    answers: list[Attempt] = field(default_factory=list)
    hangs: bool = False
    pending: list[Deferred[Attempt]] = field(default_factory=list)
    accounts: list[str] = field(default_factory=list)
    hung_up: int = 0
    config: Config = field(default_factory=Config)

    def require_allowed(self, url: str, account_name: str) -> None:
        """Reject one host."""
        if urlsplit(url).hostname == OWN_HOST:
            raise InvalidParameter("url", "url leads to this service itself")

    def require_mailable(self, address: str, account_name: str) -> None:
        """Reject one domain."""
        if address.endswith(f"@{OWN_HOST}"):
            raise InvalidParameter("alertTo", f"alertTo: no mail to {address}")

    def change(self, config: Config) -> None:
        """Record the configuration of a reload."""
        self.config = config

    def line(self, account_name: str) -> "_Line":
        """Return a connection for an account."""
        self.accounts.append(account_name)
        return _Line(self)

    @property
    def subjects(self) -> list[str]:
        """The subjects of the sent events, in order."""
        return [body_of(post)["subject"] for post in self.posts]

    @property
    def ids(self) -> list[str]:
        """The ids of the sent events, in order."""
        return [post.event_id for post in self.posts]

    def answer(self, attempt: Attempt = TAKEN) -> None:
        """Answer the oldest pending request."""
        self.pending.pop(0).callback(attempt)


@dataclass
class _Line:
    receivers: ScriptedReceivers

    def post(self, post: Post) -> Deferred[Attempt]:
        """Record a request."""
        receivers = self.receivers
        receivers.posts.append(post)
        if receivers.hangs:
            pending: Deferred[Attempt] = Deferred()
            receivers.pending.append(pending)
            return pending
        return succeed(receivers.answers.pop(0) if receivers.answers else TAKEN)

    def hang_up(self) -> None:
        """Count the call."""
        self.receivers.hung_up += 1


def body_of(post: Post) -> Any:
    """Return the message of a request."""
    return json.loads(post.body)


def signs(secret: str, post: Post) -> bool:
    """Return whether a request is signed with a secret."""
    assert Webhook(secret)
    return secret in post.secrets and post.sent_at > SECOND
