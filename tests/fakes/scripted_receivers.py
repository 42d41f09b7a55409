"""Receivers of webhooks with scripted answers."""

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from standardwebhooks import Webhook
from twisted.internet.defer import Deferred, succeed

from mailcheck.config.options import Config
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.inbound import InboundMail, InboundRequest, InboundRoute
from mailcheck.core.instants import SECOND
from mailcheck.core.webhooks import Attempt
from mailcheck.ports.probes import InboundAnswer, Post

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
    inbound: list[InboundRequest] = field(default_factory=list)
    """The requests to applications, with each mail to an SMTP server."""
    mailed: list[InboundMail] = field(default_factory=list)
    inbound_answers: list[InboundAnswer] = field(default_factory=list)
    cut_off: int = 0

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

    async def post_inbound(
        self, account_name: str, request: InboundRequest, seconds: float, *, is_cut_off: bool
    ) -> InboundAnswer:
        """Record a request to an application, and return the next of ``inbound_answers``."""
        self.inbound.append(request)
        return self._answer_inbound(is_cut_off=is_cut_off)

    async def mail_inbound(
        self, route: InboundRoute, mail: InboundMail, seconds: float, *, is_cut_off: bool
    ) -> InboundAnswer:
        """Record a mail to an application, and return the next of ``inbound_answers``."""
        self.mailed.append(mail)
        return self._answer_inbound(is_cut_off=is_cut_off)

    def _answer_inbound(self, *, is_cut_off: bool) -> InboundAnswer:
        if is_cut_off:
            self.cut_off += 1
            return InboundAnswer(problem="cut off")
        if self.inbound_answers:
            return self.inbound_answers.pop(0)
        return InboundAnswer(200, headers=(("Server", "app"),), body=b"taken")

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
