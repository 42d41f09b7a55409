"""Other hosts: mail hosts, registries, links, content filters and receivers of events.

Every probe fires with a value, whatever the host does, within a deadline of its own.
Cancelling stops waiting; a probe that is under way goes on for the others and for the
memory: a host is not asked again because a client went away.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from mailcheck.checks.deliverability.content_filter import FilterOutcome, FilterProblem
from mailcheck.checks.hosts.mta_sts import PolicyFetch
from mailcheck.checks.hosts.registration import RegistrationVerdict
from mailcheck.checks.hosts.starttls import StarttlsProbe
from mailcheck.core.instants import Instant
from mailcheck.core.webhooks import Attempt

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

    from mailcheck.checks.link_checks import LinkAnswer


class OutboundPort(Enum):
    """Whether connections to port 25 leave this network."""

    OPEN = "open"
    BLOCKED = "blocked"
    """Not even hosts that take every connection can be reached."""
    UNKNOWN = "unknown"


class StarttlsProber(Protocol):
    """Looks what encryption mail hosts offer."""

    def probe(self, exchange: str) -> Deferred[StarttlsProbe]:
        """Probe one host, by its name in the MX record; at most once in ten minutes."""

    def outbound_port(self) -> Deferred[OutboundPort]:
        """Say whether probing is possible from here: asked where hosts were unreachable."""


class RegistrationFinder(Protocol):
    """Asks registries about domains."""

    def find_registration(self, domain: str) -> Deferred[RegistrationVerdict]:
        """Find the registration that a name (lower-case A-labels) belongs to."""


class PolicyFetcher(Protocol):
    """Fetches MTA-STS policy files."""

    def fetch_policy(self, domain: str) -> Deferred[PolicyFetch]:
        """Fetch the policy of a domain (lower-case A-labels), as a sending server would."""


class LinkProber(Protocol):
    """Asks for links."""

    def probe_link(self, url: str, method: str) -> Deferred[LinkAnswer]:
        """Ask for a link by HEAD or GET, and follow its redirects; fires within ten seconds.

        What was asked within the last minute is not asked again. Never fails.
        """


class ContentFilter(Protocol):
    """Judges mails by their content, as a receiver's spam filter would."""

    def judge(self, raw_message: bytes) -> Deferred[FilterOutcome]:
        """Judge a mail; our trace fields stand on top of it (`with_trace_fields`).

        Fires with a value within two minutes, whatever becomes of the filter: a failure
        of the filter's is a `FilterUnavailable`. Cancelling gives the mail up.
        """


class PrivateSpamd(Protocol):
    """A spamd of our own, which runs while it is needed."""

    def socket_path(self) -> Deferred[str]:
        """Give the path of its socket when it listens there; starts it where it does not run.

        :raises FilterFailed: it is not installed, or can't be started.
        """

    @property
    def is_running(self) -> bool:
        """Tell whether it listens, or is about to."""

    @property
    def engine(self) -> str:
        """Name the program, with its version where it is known."""


class FilterFailed(Exception):
    """The filter has not judged; the message is for the log and holds nothing of the mail."""

    def __init__(self, problem: FilterProblem, message: str = "") -> None:
        super().__init__(message or problem.value)
        self.problem = problem


class Post(Struct, frozen=True):
    """One event to be told, signed by each of the secrets (Standard Webhooks); or a mail."""

    url: str
    secrets: tuple[str, ...]
    event_id: str
    sent_at: Instant
    body: bytes


class WebhookLine(Protocol):
    """The way to one receiver; its connection is kept from one event to the next."""

    def post(self, post: Post) -> Deferred[Attempt]:
        """Send an event; whatever goes wrong is the result. Cancelling hangs up."""

    def hang_up(self) -> None:
        """Close what is open."""


class WebhookDialer(Protocol):
    """Opens lines, each to where its account may send."""

    def require_foreign(self, url: str) -> None:
        """See that a URL does not lead to this service itself, as far as that shows.

        :raises InvalidParameter: it does.
        """

    def line(self, account_name: str) -> WebhookLine:
        """Give a line of its own for a webhook of an account; nothing is sent yet."""


class ReceiverRules(Protocol):
    """Who may be told."""

    def require_foreign(self, url: str) -> None:
        """See that a URL does not lead to this service itself, as far as that shows.

        :raises InvalidParameter: it does.
        """

    def require_mailable(self, address: str, account_name: str) -> None:
        """See that an account may have alerts mailed to an address.

        :raises InvalidParameter: the operator does not allow it, or no mail is sent.
        """
