"""Receivers of webhooks that answer as a test says."""

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from standardwebhooks import Webhook
from twisted.internet.defer import Deferred, succeed

from mailcheck.core.errors import InvalidParameter
from mailcheck.core.instants import SECOND
from mailcheck.core.webhooks import Attempt
from mailcheck.ports.probes import Post

TAKEN = Attempt(200)
BROKEN = Attempt(500, "it answered 500")
OWN_HOST = "mailcheck.example"


@dataclass
class ScriptedReceivers:
    """Fills the port `WebhookDialer`: every URL answers with ``answers``, in turn, then 200.

    With ``hangs`` an answer comes when the test says so.
    """

    posts: list[Post] = field(default_factory=list)
    answers: list[Attempt] = field(default_factory=list)
    hangs: bool = False
    pending: list[Deferred[Attempt]] = field(default_factory=list)
    accounts: list[str] = field(default_factory=list)
    hung_up: int = 0

    def require_foreign(self, url: str) -> None:
        """Refuse one host."""
        if urlsplit(url).hostname == OWN_HOST:
            raise InvalidParameter("url", "url leads to this service itself")

    def require_mailable(self, address: str, account_name: str) -> None:
        """Refuse one domain."""
        if address.endswith(f"@{OWN_HOST}"):
            raise InvalidParameter("alertTo", f"alertTo: no mail to {address}")

    def line(self, account_name: str) -> "_Line":
        """Give a line to whoever is posted to."""
        self.accounts.append(account_name)
        return _Line(self)

    @property
    def subjects(self) -> list[str]:
        """Give the subjects of what was posted, in order."""
        return [body_of(post)["subject"] for post in self.posts]

    @property
    def ids(self) -> list[str]:
        """Give the ids of what was posted, in order."""
        return [post.event_id for post in self.posts]

    def answer(self, attempt: Attempt = TAKEN) -> None:
        """Answer the post that waits longest."""
        self.pending.pop(0).callback(attempt)


@dataclass
class _Line:
    receivers: ScriptedReceivers

    def post(self, post: Post) -> Deferred[Attempt]:
        """Take a post down."""
        receivers = self.receivers
        receivers.posts.append(post)
        if receivers.hangs:
            pending: Deferred[Attempt] = Deferred()
            receivers.pending.append(pending)
            return pending
        return succeed(receivers.answers.pop(0) if receivers.answers else TAKEN)

    def hang_up(self) -> None:
        """Note it."""
        self.receivers.hung_up += 1


def body_of(post: Post) -> Any:
    """Give the message that was posted."""
    return json.loads(post.body)


def signs(secret: str, post: Post) -> bool:
    """Tell whether a secret is among those that a post is signed with."""
    assert Webhook(secret)
    return secret in post.secrets and post.sent_at > SECOND
