"""Sending mails to applications over HTTP and SMTP, with the guarded dialer.

Accounts choose the URLs, so they have the permissions and limits of webhooks: public addresses, and
the private networks that the operator allows an account. Redirects are not followed.
"""

from urllib.parse import urlsplit

from msgspec import Struct
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IConsumer, IReactorTime
from twisted.internet.task import deferLater
from twisted.web.client import Agent, RequestGenerationFailed
from twisted.web.http_headers import Headers
from twisted.web.iweb import IBodyProducer, IResponse
from zope.interface import implementer

from mailcheck.core.inbound import (
    ANSWER_KEPT,
    LONGEST_HEADER_KEPT,
    MOST_HEADERS_KEPT,
    InboundMail,
    InboundRequest,
    InboundRoute,
)
from mailcheck.core.network_addresses import why_not_public
from mailcheck.ports.probes import InboundAnswer
from mailcheck.probes.fetching import BREAKDOWNS, BytesBody, ResponseBeginning, WebConnections
from mailcheck.probes.guarded_dialer import DialFailed, ProbeReactor
from mailcheck.probes.smtp_relay import NEVER, OFFERED, REQUIRED, Relay, SmtpRelay
from mailcheck.probes.trust import TrustRoots
from mailcheck.probes.webhook_sender import (
    MOST_A_MINUTE,
    AddressRateLimit,
    HttpWebhookDialer,
    why_no_answer,
    why_not_connected,
)

MOST_OCTETS = 2 * ANSWER_KEPT
"""Maximum octets of an answer with its headers. The body is not read beyond `ANSWER_KEPT`."""

CUT_OFF = "the connection was closed in the middle of the body, as the fault requests"

SMTP_PORT = 25

FOREIGN = (
    f"it is a public mail server at port {SMTP_PORT}, which takes mail from anybody; the operator "
    "can allow its network in [webhooks] allow"
)
"""Why a mail is not sent. Otherwise each account could send any mail to anybody."""

FLUSHED_AFTER = 0.1
"""Seconds in which the first half of a body reaches the application before the connection ends."""


class ApplicationSender(Struct, frozen=True, eq=False):
    """Implements `mailcheck.ports.probes.InboundSender`.

    :param posts: has the permissions of the accounts.
    :param own_name: the name that this server says in EHLO.
    """

    reactor: ProbeReactor
    posts: HttpWebhookDialer
    trust: TrustRoots
    own_name: str

    async def post_inbound(
        self, account_name: str, request: InboundRequest, seconds: float, *, is_cut_off: bool
    ) -> InboundAnswer:
        """Send a request as defined by `InboundSender`."""
        if request.url.startswith("https:") and not self.posts.has_authorities:
            return InboundAnswer(problem="no certificate authorities are installed to verify it")
        connections, pace = self.posts.connections(account_name, seconds, MOST_OCTETS)

        def too_late(_: object, __: float) -> InboundAnswer:
            return InboundAnswer(problem=f"no answer within {seconds:g} seconds")

        posting = Deferred.fromCoroutine(self._post(request, connections, is_cut_off=is_cut_off))
        posting.addTimeout(seconds, self.reactor, too_late)
        try:
            return await posting
        except (DialFailed, RequestGenerationFailed, *BREAKDOWNS, ValueError) as failure:
            if is_cut_off and not isinstance(failure, DialFailed):
                return InboundAnswer(problem=CUT_OFF)
            if isinstance(failure, DialFailed):
                return _not_dialled(failure, pace)
            return InboundAnswer(problem=why_no_answer(failure, connections))
        finally:
            connections.hang_up()

    async def _post(
        self, request: InboundRequest, connections: WebConnections, *, is_cut_off: bool
    ) -> InboundAnswer:
        agent = Agent.usingEndpointFactory(self.reactor, connections)
        headers = Headers()
        for name, value in request.headers:
            headers.addRawHeader(name.encode(), value.encode())
        response: IResponse = await agent.request(
            request.method.encode("ascii"),
            request.url.encode("ascii"),
            headers,
            _CutBody(request.body, self.reactor) if is_cut_off else BytesBody(request.body),
        )
        rest = ResponseBeginning(ANSWER_KEPT)
        response.deliverBody(rest)
        await rest.ended
        return InboundAnswer(response.code, "", _headers_of(response), bytes(rest.body))

    async def mail_inbound(
        self, route: InboundRoute, mail: InboundMail, seconds: float, *, is_cut_off: bool
    ) -> InboundAnswer:
        """Send a mail as defined by `InboundSender`."""
        parts = urlsplit(route.url)
        host, port = parts.hostname or "", parts.port or SMTP_PORT
        pace = self.posts.pace(route.account_name)
        allowed = self.posts.allowed(route.account_name)
        try:
            address, *_ = await self.posts.dialer.choose(
                host, port, seconds=seconds, may_use=pace.within, allowed=allowed
            )
        except DialFailed as failure:
            return _not_dialled(failure, pace)
        is_allowed = any(address in network for network in allowed)
        is_public = why_not_public(address) is None
        if is_public and not is_allowed and port == SMTP_PORT:
            return InboundAnswer(problem=FOREIGN)
        # A server in the own network mostly has no certificate for its name.
        tls = NEVER
        if is_public:
            tls = REQUIRED if route.user else OFFERED
        relay = Relay(
            host=host,
            port=port,
            tls=tls,
            user=route.user,
            password=route.password,
            own_name=self.own_name,
            owner="of the route",
            called="the server",
            address=str(address),
            is_cut_off=is_cut_off,
        )
        sent = await SmtpRelay(self.reactor, relay, self.trust, seconds).send_mail(
            mail.envelope_sender, mail.recipients, mail.raw_message
        )
        if is_cut_off and sent.status is None:
            return InboundAnswer(problem=CUT_OFF)
        refused = [reply for reply in sent.replies if not reply.is_accepted]
        body = "\n".join(
            f"{reply.address}: {reply.code} {reply.text}" for reply in sent.replies
        ).encode()
        status = refused[0].code if refused else sent.status
        problem = "" if status is not None else sent.problem
        return InboundAnswer(status, problem, body=body[:ANSWER_KEPT])


def _not_dialled(failure: DialFailed, pace: AddressRateLimit) -> InboundAnswer:
    if pace.wait:
        problem = f"its address has received {MOST_A_MINUTE:,} requests in this minute"
        return InboundAnswer(problem=problem, wait=pace.wait)
    return InboundAnswer(problem=why_not_connected(failure))


def _break_down(_: object) -> None:
    raise ConnectionDone


def _headers_of(response: IResponse) -> tuple[tuple[str, str], ...]:
    found = (
        (name.decode("latin-1"), value.decode("latin-1")[:LONGEST_HEADER_KEPT])
        for name, values in response.headers.getAllRawHeaders()
        for value in values
    )
    kept, room = [], MOST_HEADERS_KEPT
    for name, value in found:
        room -= len(name) + len(value)
        if room < 0:
            break
        kept.append((name, value))
    return tuple(kept)


@implementer(IBodyProducer)
class _CutBody:
    """The first half of a body. Then the connection is closed."""

    def __init__(self, body: bytes, clock: IReactorTime) -> None:
        self._half = body[: len(body) // 2]
        self._clock = clock
        self.length = len(body)

    def startProducing(self, consumer: IConsumer) -> Deferred[None]:  # noqa: N802
        """Write half of the body, and end as a connection that broke down."""
        consumer.write(self._half)
        # An aborted connection loses what it has not sent yet.
        return deferLater(self._clock, FLUSHED_AFTER).addCallback(_break_down)

    def pauseProducing(self) -> None:  # noqa: N802
        """Ignore the call: the half was written at once."""

    def resumeProducing(self) -> None:  # noqa: N802
        """Ignore the call: the half was written at once."""

    def stopProducing(self) -> None:  # noqa: N802
        """Ignore the call: the half was written at once."""
