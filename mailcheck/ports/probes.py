"""Protocols for probes of other hosts, for content filters and for receivers of webhooks.

Each probe has its own deadline and fires with a value, also on failure.
Cancelling only stops the wait. A running probe continues for other callers and for the
cache, so a host is not probed again because a client disconnected.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from mailcheck.checks.bimi.evaluate import FileFetch
from mailcheck.checks.deliverability.content_filter import FilterOutcome, FilterProblem
from mailcheck.checks.hosts.mta_sts import PolicyFetch
from mailcheck.checks.hosts.registration import RegistrationVerdict
from mailcheck.checks.hosts.starttls import StarttlsProbe
from mailcheck.core.inbound import InboundMail, InboundRequest, InboundRoute
from mailcheck.core.instants import Instant
from mailcheck.core.oauth.clients import ClientDocument
from mailcheck.core.webhooks import Attempt

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

    from mailcheck.checks.link_checks import LinkAnswer
    from mailcheck.checks.press_unsubscribe import PressAnswer


class OutboundPort(Enum):
    """Whether connections to port 25 leave this network."""

    OPEN = "open"
    BLOCKED = "blocked"
    """Even hosts that accept all connections cannot be reached."""
    UNKNOWN = "unknown"


class StarttlsProber(Protocol):
    """Checks the encryption that mail hosts offer."""

    def probe(self, exchange: str) -> Deferred[StarttlsProbe]:
        """Probe one host, by its name in the MX record; at most once in ten minutes."""

    def outbound_port(self) -> Deferred[OutboundPort]:
        """Return whether port 25 can be reached. Called if hosts were unreachable."""


class RegistrationFinder(Protocol):
    """Looks up the registration of domains."""

    def find_registration(self, domain: str) -> Deferred[RegistrationVerdict]:
        """Find the registration that a name (lower-case A-labels) belongs to."""


class PolicyFetcher(Protocol):
    """Fetches MTA-STS policy files."""

    def fetch_policy(self, domain: str) -> Deferred[PolicyFetch]:
        """Fetch the policy of a domain (lower-case A-labels), as a sending server would."""


class LogoFetcher(Protocol):
    """Fetches logos and their certificates (BIMI)."""

    def fetch_logo(self, url: str) -> Deferred[FileFetch]:
        """Fetch a logo, at a URL for which `is_usable_url` holds. Redirects are followed."""

    def fetch_certificate(self, url: str) -> Deferred[FileFetch]:
        """Fetch the certificate of a logo, at such a URL."""


class DomainFiles(PolicyFetcher, LogoFetcher, Protocol):
    """Fetches the files that the records of a domain name."""


class ClientDocuments(Protocol):
    """Fetches the metadata documents of OAuth clients."""

    def fetch_client(self, url: str) -> Deferred[ClientDocument]:
        """Fetch the document at a URL (`is_document_url`). Results are cached.

        A failure is part of the result.
        """


class LinkProber(Protocol):
    """Checks links."""

    def probe_link(self, url: str, method: str) -> Deferred[LinkAnswer]:
        """Request a link by HEAD or GET and follow its redirects. Fires within ten seconds.

        Results are cached for a minute. The Deferred never fails.
        """

    def press_unsubscribe(self, url: str) -> Deferred[PressAnswer]:
        """Send the one-click unsubscribe request to an https URL, once and without redirects.

        Fires within ten seconds, and never fails. Results are not cached.
        """


class ContentFilter(Protocol):
    """Checks the content of mails as a receiver's spam filter would."""

    def judge(self, raw_message: bytes) -> Deferred[FilterOutcome]:
        """Check a mail that begins with the trace fields of this server (`with_trace_fields`).

        Fires with a value within two minutes. A failure of the filter is a
        `FilterUnavailable`. Cancelling abandons the check.
        """


class PrivateSpamd(Protocol):
    """A private spamd that runs while it is needed."""

    def socket_path(self) -> Deferred[str]:
        """Return the path of its socket once it accepts connections. Start it if necessary.

        :raises FilterFailed: it is not installed, or cannot be started.
        """

    @property
    def is_running(self) -> bool:
        """Whether it accepts connections or is starting."""

    @property
    def engine(self) -> str:
        """The name of the program, with its version if that is known."""


class FilterFailed(Exception):
    """The filter has failed. The message is for the log and contains no part of the mail."""

    def __init__(self, problem: FilterProblem, message: str = "") -> None:
        super().__init__(message or problem.value)
        self.problem = problem


class Post(Struct, frozen=True):
    """An event to send: a webhook signed with each secret (Standard Webhooks), or a mail.

    With a ``provider``, the event is signed as that provider does.
    """

    url: str
    secrets: tuple[str, ...]
    event_id: str
    sent_at: Instant
    body: bytes
    provider: str = ""


class RelayReply(Struct, frozen=True):
    """What a relay answered about one recipient."""

    address: str
    code: int
    text: str

    @property
    def is_accepted(self) -> bool:
        """Whether the relay accepted the recipient."""
        return 200 <= self.code < 300


class Relayed(Struct, frozen=True):
    """The result of a mail that was given to a relay.

    :param problem: empty if the relay accepted the mail for at least one recipient.
    :param is_permanent: whether the same mail will be rejected again.
    """

    status: int | None = None
    problem: str = ""
    is_permanent: bool = False
    replies: tuple[RelayReply, ...] = ()


class MailRelay(Protocol):
    """Sends mails over a relay of the operator."""

    async def send_mail(self, sender: str, recipients: Sequence[str], mail: bytes) -> Relayed:
        """Send a mail whose lines end in CRLF. Failures are part of the result."""


class WebhookLine(Protocol):
    """The connection to one receiver, which is reused for later events."""

    def post(self, post: Post) -> Deferred[Attempt]:
        """Send an event. Failures are part of the result. Cancelling closes the connection."""

    def hang_up(self) -> None:
        """Close the connection."""


class WebhookDialer(Protocol):
    """Creates connections to receivers, within the permissions of each account."""

    def require_allowed(self, url: str, account_name: str) -> None:
        """Check that an account may send to a URL, as far as the URL shows it.

        :raises InvalidParameter: it leads to this service itself, or to a private address.
        """

    def line(self, account_name: str) -> WebhookLine:
        """Return a new line for a webhook of an account, without connecting."""


class InboundAnswer(Struct, frozen=True):
    """What an application answered to a mail.

    :param status: the HTTP status or the code of the SMTP reply; `None` without an answer.
    :param problem: why there is no answer; empty with one.
    :param body: the first `mailcheck.core.inbound.ANSWER_KEPT` octets.
    :param wait: set if the rate limit of the target was reached, so that it was not sent: the
        milliseconds until the next attempt is allowed.
    """

    status: int | None = None
    problem: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    wait: int = 0


class InboundSender(Protocol):
    """Sends mails to applications, within the permissions of each account.

    Failures are part of the results. With ``is_cut_off``, the connection is closed in the middle of
    the body.
    """

    def require_allowed(self, url: str, account_name: str) -> None:
        """Check that an account may send to a URL, as far as the URL shows it.

        :raises InvalidParameter: it leads to this service itself, or to a private address.
        """

    async def post_inbound(
        self, account_name: str, request: InboundRequest, seconds: float, *, is_cut_off: bool
    ) -> InboundAnswer:
        """Send a request to an application, and wait for the answer for at most ``seconds``."""

    async def mail_inbound(
        self, route: InboundRoute, mail: InboundMail, seconds: float, *, is_cut_off: bool
    ) -> InboundAnswer:
        """Send a mail to the SMTP server of an application."""


class ReceiverRules(Protocol):
    """Rules for receivers of alerts."""

    def require_allowed(self, url: str, account_name: str) -> None:
        """Check that an account may send to a URL, as far as the URL shows it.

        :raises InvalidParameter: it leads to this service itself, or to a private address.
        """

    def require_mailable(self, address: str, account_name: str) -> None:
        """Check that an account may have alerts mailed to an address.

        :raises InvalidParameter: the operator does not allow it, or there is no mail relay.
        """
