"""Sending events to webhooks with the guarded dialer, signed according to Standard Webhooks.

Accounts choose the URLs. Only public addresses are contacted, and the private networks that the
operator allows an account. Redirects are not followed, and each address has a rate limit.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from ipaddress import ip_network
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.web.client import Agent, HTTPConnectionPool
from twisted.web.http_headers import Headers
from twisted.web.iweb import IResponse

from mailcheck.checks.content.decoding import flatten_controls
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.instants import SECOND
from mailcheck.core.memory.client_limits import MINUTE_WINDOW
from mailcheck.core.memory.keys import key_of
from mailcheck.core.network_addresses import (
    IpAddress,
    IpNetwork,
    counting_key,
    parse_ip_address,
    why_not_public,
)
from mailcheck.core.webhooks import CHAT_FORMATS, RESPONSE_KEPT, Attempt
from mailcheck.operations.inbox.webhooks.event_signatures import (
    sign_body_with_hmac,
    sign_with_ecdsa,
)
from mailcheck.ports.clocks import Now
from mailcheck.ports.cluster import Hit, RateCounters
from mailcheck.ports.probes import Post
from mailcheck.probes.fetching import (
    BREAKDOWNS,
    USER_AGENT,
    BytesBody,
    ResponseBeginning,
    WebConnections,
    problem_of,
)
from mailcheck.probes.guarded_dialer import (
    AddressRefused,
    ConnectionsRefused,
    DialFailed,
    FetchProblem,
    GuardedDialer,
    HostNotFound,
    HostUndetermined,
    ProbeReactor,
)
from mailcheck.probes.trust import TrustRoots

SECONDS = 15.0
"""Seconds for one delivery."""

DRAIN_SECONDS = 2.0
"""Seconds for the rest of a response, which is discarded. Afterwards the connection is closed."""

KEPT_SECONDS = 30
"""Seconds that an idle connection is kept for the next event."""

MAX_OCTETS = 65_536
"""Maximum number of octets of a response."""

MAX_KEPT = 4 * RESPONSE_KEPT
"""Maximum number of octets of a response that are decoded."""

MOST_A_MINUTE = 1_200
"""Maximum number of events to one public address (IPv6: /64) per clock minute, from all
accounts."""

REQUEST_TIMEOUT, TOO_MANY = 408, 429
"""Statuses below 500 after which an event is sent again (RFC 9110 15.5.9, RFC 6585 4)."""

_NUMBER = re.compile(rb"[0-9]{1,9}")

_WHY_NO_ANSWER: Mapping[FetchProblem, str] = {
    FetchProblem.BAD_CERTIFICATE: "its certificate is not for its host name, or not from a known "
    "authority",
    FetchProblem.NO_CONNECTION: "no encrypted connection could be made",
    FetchProblem.TOO_LARGE: f"its response has more than {MAX_OCTETS:,} bytes",
    FetchProblem.NO_HTTP: "its response is incomplete, or not HTTP",
}
"""Why a request has no answer, in a few words."""


class HttpWebhookDialer:
    """Implements `mailcheck.ports.probes.WebhookDialer` for URLs with the guarded dialer.

    :param allowed: private networks that accounts may use, by account name.
    :param own_url: the public URL of this service.
    :param seconds: time limit for one delivery, from DNS to the status.
    """

    def __init__(
        self,
        reactor: ProbeReactor,
        dialer: GuardedDialer,
        trust: TrustRoots,
        counters: RateCounters,
        allowed: Mapping[str, Sequence[IpNetwork]],
        own_url: str,
        now: Now,
        seconds: float,
    ) -> None:
        self._reactor = reactor
        self.dialer = dialer
        self._trust = trust
        self._counters = counters
        self._allowed = allowed
        self._own_place = _place(own_url)
        self._now = now
        self._seconds = seconds

    def require_allowed(self, url: str, account_name: str) -> None:
        """Reject a URL that obviously leads to this service itself or to a private address."""
        if _place(url) == self._own_place:
            raise InvalidParameter("url", "url leads to this service itself")
        address = _literal_address(url)
        allowed = self._allowed.get(account_name, ())
        if address is None or any(address in network for network in allowed):
            return
        if (why := why_not_public(address)) is not None:
            network = ip_network(address)
            raise InvalidParameter(
                "url",
                f"url leads to {address}, {why}. The operator can allow it in the configuration:"
                f' [webhooks] allow = ["{account_name}={network}"]',
            )

    def line(self, account_name: str) -> "HttpWebhookLine":
        """Return a new line for a webhook of an account. It does not connect yet."""
        connections, pace = self.connections(account_name, self._seconds, MAX_OCTETS)
        return HttpWebhookLine(
            self._reactor, connections, pace, self._seconds, has_authorities=bool(self._trust)
        )

    def connections(
        self, account_name: str, seconds: float, max_octets: int
    ) -> tuple[WebConnections, "AddressRateLimit"]:
        """Return the connections that an account may open, and their rate limit."""
        pace = self.pace(account_name)
        connections = WebConnections(
            self.dialer,
            self._trust,
            seconds=seconds,
            max_octets=max_octets,
            may_use=pace.within,
            allowed=self.allowed(account_name),
        )
        return connections, pace

    def pace(self, account_name: str) -> "AddressRateLimit":
        """Return the rate limit of the addresses that an account sends to."""
        return AddressRateLimit(self._counters, self.allowed(account_name), self._now)

    def allowed(self, account_name: str) -> Sequence[IpNetwork]:
        """Return the private networks that an account may use."""
        return self._allowed.get(account_name, ())

    @property
    def has_authorities(self) -> bool:
        """Whether certificates can be verified."""
        return bool(self._trust)


class AddressRateLimit:
    """Limits the events that one address gets in a minute, from all accounts together.

    ``wait``: milliseconds until an address that was left out may get the next event, or 0.
    """

    def __init__(self, counters: RateCounters, allowed: Collection[IpNetwork], now: Now) -> None:
        self._counters = counters
        self._allowed = allowed
        self._now = now
        self.wait = 0

    async def within(self, addresses: Sequence[IpAddress]) -> Sequence[IpAddress]:
        """Count an event for each address, and return those below the limit."""
        now = self._now()
        self.wait = 0
        found = []
        for address in addresses:
            if any(address in network for network in self._allowed):
                found.append(address)
                continue
            windows = ((MINUTE_WINDOW, MINUTE_WINDOW.index(now), MOST_A_MINUTE),)
            subject = key_of("webhooks to", counting_key(str(address)))
            ((count,),) = await self._counters.hit(Hit(subject, windows))
            if count <= MOST_A_MINUTE:
                found.append(address)
            else:
                self.wait = max(1, MINUTE_WINDOW.reset_at(now) - now)
        if found:
            self.wait = 0
        return found


class HttpWebhookLine:
    """Delivers the events of one webhook."""

    def __init__(
        self,
        reactor: ProbeReactor,
        connections: WebConnections,
        pace: AddressRateLimit,
        seconds: float,
        *,
        has_authorities: bool,
    ) -> None:
        any_reactor: Any = reactor
        self._reactor = reactor
        self._connections = connections
        self._pace = pace
        self._seconds = seconds
        self._has_authorities = has_authorities
        self._pool = HTTPConnectionPool(any_reactor)
        self._pool.maxPersistentPerHost = 1
        self._pool.cachedConnectionTimeout = KEPT_SECONDS
        self._agent = Agent.usingEndpointFactory(any_reactor, connections, self._pool)

    def post(self, post: Post) -> Deferred[Attempt]:
        """Send an event. Failures are part of the result; cancelling closes the connection."""

        def too_late(_: object, __: float) -> Attempt:
            self.hang_up()
            return Attempt(problem=f"no answer within {self._seconds:g} seconds")

        posting = Deferred.fromCoroutine(self._post(post))
        return posting.addTimeout(self._seconds, self._reactor, too_late)

    def hang_up(self) -> None:
        """Close the connection."""
        self._pool.closeCachedConnections().addErrback(lambda _: None)
        self._connections.hang_up()

    async def _post(self, post: Post) -> Attempt:
        if post.url.startswith("https:") and not self._has_authorities:
            return Attempt(problem="no certificate authorities are installed to verify it")
        self._pace.wait = 0
        kept = self._connections.peer
        if kept is not None and not await self._pace.within([kept]):
            return self._too_much()
        try:
            try:
                return await self._send(post)
            except BREAKDOWNS:
                if kept is None or self._connections.is_flooded:
                    raise
            # The receiver has just closed the kept connection, which is not a failure.
            self._connections.hang_up()
            return await self._send(post)
        except (DialFailed, *BREAKDOWNS) as failure:
            self._connections.hang_up()
            return self._explain(failure)

    async def _send(self, post: Post) -> Attempt:
        self._connections.reset_octets()
        headers = Headers(headers_of(post))
        body = BytesBody(post.body)
        response: IResponse = await self._agent.request(
            b"POST", post.url.encode("ascii"), headers, body
        )
        rest = ResponseBeginning(MAX_KEPT, reads_on=True)
        response.deliverBody(rest)
        try:
            await rest.ended.addTimeout(DRAIN_SECONDS, self._reactor)
        except DeferredTimeout:
            self._connections.hang_up()
        attempt = _judge(response.code, is_strict=post.provider in CHAT_FORMATS)
        wait = (response.headers.getRawHeaders(b"retry-after") or [b""])[0]
        retry_after = int(wait) * SECOND if _NUMBER.fullmatch(wait) else 0
        return replace(attempt, response=_shown(rest.body), retry_after=retry_after)

    def _too_much(self) -> Attempt:
        problem = f"its address has received {MOST_A_MINUTE:,} events in this minute"
        return Attempt(problem=problem, wait=self._pace.wait)

    def _explain(self, failure: Exception) -> Attempt:
        if self._pace.wait:
            return self._too_much()
        if isinstance(failure, DialFailed):
            return Attempt(problem=why_not_connected(failure))
        return Attempt(problem=why_no_answer(failure, self._connections))


def _judge(status: int, *, is_strict: bool) -> Attempt:
    """Return the result for a status.

    :param is_strict: the receiver means what it answers, so a rejected event is not repeated.
    """
    if 200 <= status < 300:
        return Attempt(status)
    is_redirect = 300 <= status < 400
    more = ", and redirects are not followed" if is_redirect else ""
    is_permanent = is_strict and 300 <= status < 500 and status not in (REQUEST_TIMEOUT, TOO_MANY)
    return Attempt(status, f"it answered {status}{more}", is_permanent=is_permanent)


def why_no_answer(failure: Exception, connections: WebConnections) -> str:
    """Return why a request has no answer, in a few words."""
    problem = FetchProblem.TOO_LARGE if connections.is_flooded else problem_of(failure)
    return _WHY_NO_ANSWER.get(problem, "its URL cannot be used")


def why_not_connected(failure: DialFailed) -> str:
    """Return why no connection was made, in a few words."""
    if isinstance(failure, HostNotFound):
        return "its host has no address"
    if isinstance(failure, HostUndetermined):
        return "the address of its host could not be determined"
    if isinstance(failure, AddressRefused):
        return f"its address is not allowed: {failure}"
    if isinstance(failure, ConnectionsRefused):
        return "its host refuses connections"
    return "its host does not answer"


class _Notification(Struct, rename="pascal"):
    """The fields of a notification of SNS that are repeated in headers."""

    type: str
    message_id: str
    topic_arn: str


def headers_of(post: Post) -> dict[bytes, list[bytes]]:
    """Return the headers of an event with its signature, as its receiver expects it."""
    sent_at = str(post.sent_at // SECOND)
    headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": USER_AGENT}
    if post.provider == "sendgrid":
        headers["X-Twilio-Email-Event-Webhook-Timestamp"] = sent_at
        headers["X-Twilio-Email-Event-Webhook-Signature"] = sign_with_ecdsa(
            post.secrets[0], sent_at, post.body
        )
    elif post.provider == "mailtrap":
        headers["Mailtrap-Signature"] = sign_body_with_hmac(post.secrets[0], post.body)
    elif post.provider == "ses":
        shown = msgspec.json.decode(post.body, type=_Notification)
        headers["Content-Type"] = "text/plain; charset=UTF-8"
        headers["x-amz-sns-message-type"] = shown.type
        headers["x-amz-sns-message-id"] = shown.message_id
        headers["x-amz-sns-topic-arn"] = shown.topic_arn
    elif post.provider in ("", "resend"):
        # Resend signs as Standard Webhooks do, with the names of Svix.
        prefix = "svix" if post.provider else "webhook"
        headers[f"{prefix}-id"] = post.event_id
        headers[f"{prefix}-timestamp"] = sent_at
        headers[f"{prefix}-signature"] = _signatures(post)
    return {name.encode(): [value.encode()] for name, value in headers.items()}


def _signatures(post: Post) -> str:
    # Imported here because it is only needed for webhooks.
    from standardwebhooks import Webhook

    sent_at = datetime.fromtimestamp(post.sent_at // SECOND, UTC)
    sign = partial(_sign, Webhook, post, sent_at)
    return " ".join(map(sign, post.secrets))


def _sign(kind: Any, post: Post, sent_at: datetime, secret: str) -> str:
    signature: str = kind(secret).sign(post.event_id, sent_at, post.body.decode())
    return signature


def _literal_address(url: str) -> IpAddress | None:
    """Return the address in a URL, or `None` for a name other than localhost."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    return parse_ip_address("127.0.0.1" if host == "localhost" else host)


def _place(url: str) -> tuple[IpAddress | str, int]:
    """Return host and port of a URL in a normalised form."""
    parts = urlsplit(url)
    host = (parts.hostname or "").removesuffix(".")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return parse_ip_address(host) or host, port


def _shown(body: bytearray) -> str:
    """Return the beginning of a response in one line."""
    return " ".join(flatten_controls(body.decode("utf-8", "replace")).split())[:RESPONSE_KEPT]
