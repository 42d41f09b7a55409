"""The MCP endpoint ``/mcp``: each POST contains one message. A call can be cancelled by another."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET
from twisted.web.server import Request as HttpRequest

from mailcheck.core.accounts import Caller
from mailcheck.core.domains.domain_names import origin_of
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.identifiers import AccountId
from mailcheck.core.oauth.clients import LOOPBACK_HOSTS
from mailcheck.operations.accounts.authenticate import EndedAccess
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.ports.cluster import Notifications
from mailcheck.web.mcp.dispatch import TOOL_CALL, Dispatcher, ReceivedRequest, to_rpc_error
from mailcheck.web.mcp.json_rpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Message,
    Notification,
    PostedResponse,
    Request,
    RequestId,
    RpcError,
    is_request_id,
)
from mailcheck.web.mcp.protocol_modes import (
    STATELESS_REVISIONS,
    ProtocolMode,
    check_envelope,
    check_version,
    detect_mode,
    name_session,
    requested_extensions,
)
from mailcheck.web.mcp.transport import McpExchange, NoProgress
from mailcheck.web.oauth.server import OAuthSettings
from mailcheck.web.site.access_control import AccessControl, Denied, rate_limit_headers
from mailcheck.web.site.cross_origin import PREFLIGHT, READABLE, preflight_reply
from mailcheck.web.site.failures import FORBIDDEN_ORIGIN
from mailcheck.web.site.replies import log_crash
from mailcheck.web.site.requests import RequestUrls, header_values


class CallKey(Struct, frozen=True):
    """Identifies a running call."""

    account_id: AccountId
    session_id: str
    request_id: RequestId

    def __str__(self) -> str:
        """Format the key for notifications to other daemons."""
        return json.dumps([self.account_id, self.session_id, self.request_id])


class CallsInFlight:
    """The running calls, which can be cancelled from any daemon."""

    def __init__(self, cancellations: Notifications[str]) -> None:
        self._calls: dict[str, Deferred[Any]] = {}
        self._cancellations = cancellations
        cancellations.listen(self._cancel)

    @contextmanager
    def holding(self, key: CallKey | None, call: "Deferred[Any]") -> Iterator[None]:
        """Make a call cancellable while the block runs, unless ``key`` is `None`."""
        if key is not None:
            self._calls[str(key)] = call
        try:
            yield
        finally:
            # A client may have reused the id for another call.
            if key is not None and self._calls.get(str(key)) is call:
                del self._calls[str(key)]

    def cancel(self, key: CallKey) -> None:
        """Cancel a call in any daemon. Do nothing if it is not running."""
        self._cancellations.publish(str(key))

    def _cancel(self, key: str) -> None:
        call = self._calls.get(key)
        if call is not None:
            call.cancel()

    def __len__(self) -> int:
        return len(self._calls)


SESSION = b"Mcp-Session-Id"
SESSION_BYTES = 16
MAX_SESSION = 128
"""Maximum number of characters of a session id from a client. Generated ids have at most 37."""

_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")

_METHODS = ("GET", "POST", "DELETE")
"""The methods of MCP, so that a page sees the 405 for those that are not supported."""


class McpEndpoint(Resource):
    """Authenticates, reads and answers each message. Stops when the client disconnects."""

    isLeaf = True

    def __init__(
        self,
        access: AccessControl,
        dispatcher: Dispatcher,
        urls: RequestUrls,
        oauth: OAuthSettings,
        ended_access: EndedAccess,
        cancellations: Notifications[str],
        clock_and_randomness: ClockAndRandomness,
    ) -> None:
        super().__init__()
        self.in_flight = CallsInFlight(cancellations)
        self._access = access
        self._dispatcher = dispatcher
        self._urls = urls
        self._oauth = oauth
        self._ended_access = ended_access
        self._origins = _allowed_origins(urls.default.public_url)
        self._clock = clock_and_randomness.clock
        self._now = clock_and_randomness.now
        self._random_bytes = clock_and_randomness.random_bytes

    def render(self, request: HttpRequest) -> int:
        """Start to process a request."""
        sent = header_values(request, b"Authorization")
        had_token = any(value.strip().partition(" ")[2] for value in sent)
        challenge = partial(self._challenge, had_token)
        exchange = McpExchange(request, self._clock, self._now(), challenge)
        serving = Deferred.fromCoroutine(self._serve(exchange))

        def stop(_: Failure) -> None:
            exchange.is_gone = True
            serving.cancel()

        request.notifyFinish().addErrback(stop)
        return NOT_DONE_YET

    def _challenge(self, had_token: bool, error: RpcError) -> str:
        if error.scopes:
            return self._oauth.ask_for_more(error.scopes, error.message)
        return self._oauth.challenge(had_token=had_token)

    async def _serve(self, exchange: McpExchange) -> None:
        try:
            await self._handle(exchange)
        except CancelledError:
            if not exchange.is_gone:
                exchange.accept()
        except RpcError as error:
            exchange.send_error(error)
        except ExpectedFailure as failure:
            exchange.send_error(to_rpc_error(failure))
        except Exception:
            exchange.send_error(_report_crash(exchange.http))
        finally:
            exchange.stop()

    async def _handle(self, exchange: McpExchange) -> None:
        if self._oauth.is_for_pages(exchange.http):
            exchange.headers.update(READABLE)
            if exchange.http.method == PREFLIGHT.encode():
                exchange.send(preflight_reply(_METHODS))
                return
        caller = await self._access.authenticate(exchange.http)
        if isinstance(caller, Denied):
            exchange.headers.update(rate_limit_headers(caller.usage))
            self._check_origin(exchange)
            raise to_rpc_error(caller.failure)
        message = self._read(exchange)
        counts = isinstance(message, Request) and message.method == TOOL_CALL
        access = await (self._access.count if counts else self._access.remaining)(caller)
        exchange.headers.update(rate_limit_headers(access.usage))
        if isinstance(message, RpcError):
            raise message
        if isinstance(access, Denied):
            raise to_rpc_error(access.failure)
        if isinstance(message, Request):
            await self._answer(exchange, caller, message)
        else:
            self._receive(exchange, caller, message)
            exchange.accept()

    def _check_origin(self, exchange: McpExchange) -> None:
        is_own = self._origins.issuperset(exchange.header(b"Origin"))
        if not is_own and not self._oauth.is_for_pages(exchange.http):
            raise RpcError(
                FORBIDDEN_ORIGIN,
                "this Origin is not allowed: web pages use the host of an https [web] public_url",
            )

    def _read(self, exchange: McpExchange) -> Message | RpcError:
        """Read the message, or return the error, which is raised after the limits are known."""
        try:
            self._check_origin(exchange)
            return exchange.read()
        except RpcError as error:
            return error

    async def _answer(self, exchange: McpExchange, caller: Caller, request: Request) -> None:
        headers = exchange.routing_headers()
        exchange.mode = detect_mode(request, headers)
        if exchange.mode is ProtocolMode.STATELESS:
            check_envelope(request, headers)
        extensions = requested_extensions(request, exchange.mode, exchange.header(SESSION))
        if exchange.mode is ProtocolMode.HANDSHAKE and request.method == "initialize":
            session = name_session(self._random_bytes(SESSION_BYTES).hex(), extensions)
            exchange.headers[SESSION.decode()] = session
        is_call = request.method == TOOL_CALL
        channel = (
            exchange.open_progress_stream(request.meta.get("progressToken"))
            if is_call
            else NoProgress()
        )
        urls = self._urls.of(exchange.http)
        received = ReceivedRequest(
            request,
            exchange.mode,
            extensions,
            exchange.parameter(b"tools"),
            caller,
            received_at=exchange.received_at,
            urls=urls,
            channel=channel,
        )
        answer = Deferred.fromCoroutine(self._dispatcher.respond(received))
        key = (
            self._call_key(exchange, caller, request.id)
            if exchange.mode is ProtocolMode.HANDSHAKE
            else None
        )
        with self.in_flight.holding(key, answer):
            exchange.answer(await self._while_permitted(caller, answer))

    async def _while_permitted(self, caller: Caller, answer: "Deferred[bytes]") -> bytes:
        """Return an answer, whatever it waits for, unless the access of the caller ends before.

        :raises InvalidCredentials: it has ended.
        """
        ended: list[ExpectedFailure] = []

        def end(failure: ExpectedFailure) -> None:
            ended.append(failure)
            answer.cancel()

        with self._ended_access.watched(caller, end):
            try:
                return await answer
            except CancelledError:
                raise ended[0] if ended else CancelledError from None

    def _receive(
        self, exchange: McpExchange, caller: Caller, message: Notification | PostedResponse
    ) -> None:
        """Process a message that needs no response.

        :raises RpcError: its protocol version is not supported, or has no such message.
        """
        headers = exchange.routing_headers()
        check_version(headers)
        is_stateless = any(version in STATELESS_REVISIONS for version in headers.version)
        if isinstance(message, PostedResponse):
            if is_stateless:
                raise RpcError(INVALID_REQUEST, "this server sends no requests to answer")
        elif message.method == "notifications/cancelled" and not is_stateless:
            # A stateless client cancels by disconnecting.
            key = self._call_key(exchange, caller, message.params.get("requestId"))
            if key is not None:
                self.in_flight.cancel(key)

    def _call_key(
        self, exchange: McpExchange, caller: Caller, request_id: object
    ) -> CallKey | None:
        sessions = exchange.header(SESSION)
        if len(sessions) != 1 or len(sessions[0]) > MAX_SESSION:
            return None
        if not is_request_id(request_id):
            return None
        return CallKey(caller.account_id, sessions[0], request_id)


def _report_crash(request: HttpRequest) -> RpcError:
    crash = log_crash(request)
    return RpcError(
        INTERNAL_ERROR, str(crash), {"reference": crash.reference}, reference=crash.reference
    )


def _allowed_origins(public_url: str) -> frozenset[str]:
    """Return the origins of the web pages of this service, which may always use the endpoint.

    Other pages in a browser must not reach a daemon on the user's own machine, for example by
    DNS rebinding. So the result does not depend on the Host header of a request (MCP,
    Streamable HTTP, "Security"). A service on a loopback address has all loopback names.
    """
    origin = origin_of(public_url)
    parts = urlsplit(origin)
    if parts.hostname not in LOOPBACK_HOSTS:
        return frozenset([origin])
    port = "" if parts.port is None else f":{parts.port}"
    return frozenset(f"{parts.scheme}://{host}{port}" for host in _LOOPBACK_NAMES)
