"""``/mcp``: one POST, one message, one answer; a call under way can be cancelled by another."""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET
from twisted.web.server import Request as HttpRequest

from mailcheck.core.accounts import Caller
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.identifiers import AccountId
from mailcheck.ports.clocks import TimeAndChance
from mailcheck.ports.cluster import WakeUps
from mailcheck.web.api.admission import Gate, Refused, usage_headers
from mailcheck.web.mcp.dispatch import TOOL_CALL, Asked, Dispatcher, refuse
from mailcheck.web.mcp.eras import (
    STATELESS_REVISIONS,
    Era,
    check_envelope,
    check_version,
    find_era,
)
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
from mailcheck.web.mcp.posts import Post, Silence
from mailcheck.web.site.errors import FOREIGN_ORIGIN
from mailcheck.web.site.requests import RequestUrls


class CallKey(Struct, frozen=True):
    """Which call of whom."""

    account_id: AccountId
    session_id: str
    request_id: RequestId

    def __str__(self) -> str:
        """Write it as other daemons read it."""
        return json.dumps([self.account_id, self.session_id, self.request_id])


class CallsInFlight:
    """Remembers a call while it runs, and no longer."""

    def __init__(self, cancellations: WakeUps[str]) -> None:
        self._calls: dict[str, Deferred[Any]] = {}
        self._cancellations = cancellations
        cancellations.listen(self._cancel)

    @contextmanager
    def holding(self, key: CallKey | None, call: "Deferred[Any]") -> Iterator[None]:
        """Let a call be cancelled by its key while the block runs; without a key it can't be."""
        if key is not None:
            self._calls[str(key)] = call
        try:
            yield
        finally:
            # A client that reuses an id has taken its place.
            if key is not None and self._calls.get(str(key)) is call:
                del self._calls[str(key)]

    def cancel(self, key: CallKey) -> None:
        """Cancel a call, in whichever daemon it is; nothing happens when there is none."""
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
"""Characters of a session id that a client may name; ours have 32."""

_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_DEFAULT_PORTS = {"http": 80, "https": 443}


class McpEndpoint(Resource):
    """Admits each message, answers it, and forgets it when its client goes."""

    isLeaf = True
    _log = Logger()

    def __init__(
        self,
        gate: Gate,
        dispatcher: Dispatcher,
        urls: RequestUrls,
        cancellations: WakeUps[str],
        time_and_chance: TimeAndChance,
    ) -> None:
        super().__init__()
        self.in_flight = CallsInFlight(cancellations)
        self._gate = gate
        self._dispatcher = dispatcher
        self._urls = urls
        self._origins = _allowed_origins(urls.default.public_url)
        self._clock = time_and_chance.clock
        self._now = time_and_chance.now
        self._random_bytes = time_and_chance.random_bytes

    def render(self, request: HttpRequest) -> int:
        """Answer a request, some time."""
        post = Post(request, self._clock, self._now())
        exchange = Deferred.fromCoroutine(self._serve(post))

        def hang_up(_: Failure) -> None:
            post.is_gone = True
            exchange.cancel()

        request.notifyFinish().addErrback(hang_up)
        return NOT_DONE_YET

    async def _serve(self, post: Post) -> None:
        try:
            await self._handle(post)
        except CancelledError:
            if not post.is_gone:
                post.accept()
        except RpcError as error:
            post.refuse(error)
        except ExpectedFailure as failure:
            post.refuse(refuse(failure))
        except Exception:
            post.refuse(self._report_crash())
        finally:
            post.stop()

    async def _handle(self, post: Post) -> None:
        caller = await self._gate.identify(post.http)
        if isinstance(caller, Refused):
            post.headers.update(usage_headers(caller.usage))
            self._check_origin(post)
            raise refuse(caller.failure)
        message = self._read(post)
        counts = isinstance(message, Request) and message.method == TOOL_CALL
        admission = await (self._gate.count if counts else self._gate.look)(caller)
        post.headers.update(usage_headers(admission.usage))
        if isinstance(message, RpcError):
            raise message
        if isinstance(admission, Refused):
            raise refuse(admission.failure)
        if isinstance(message, Request):
            await self._answer(post, caller, message)
        else:
            self._note(post, caller, message)
            post.accept()

    def _check_origin(self, post: Post) -> None:
        if not self._origins.issuperset(post.header(b"Origin")):
            raise RpcError(
                FOREIGN_ORIGIN, "this Origin may not use the endpoint: keys are not for browsers"
            )

    def _read(self, post: Post) -> Message | RpcError:
        """Read the message; what is wrong is said once it is known what the caller has left."""
        try:
            self._check_origin(post)
            return post.read()
        except RpcError as error:
            return error

    async def _answer(self, post: Post, caller: Caller, request: Request) -> None:
        headers = post.routing_headers()
        post.era = find_era(request, headers)
        if post.era is Era.STATELESS:
            check_envelope(request, headers)
        elif request.method == "initialize":
            post.headers[SESSION.decode()] = self._random_bytes(SESSION_BYTES).hex()
        is_call = request.method == TOOL_CALL
        channel = post.open_channel(request.meta.get("progressToken")) if is_call else Silence()
        urls = self._urls.of(post.http)
        asked = Asked(request, post.era, caller, post.asked_at, urls, channel)
        answer = Deferred.fromCoroutine(self._dispatcher.respond(asked))
        key = self._call_key(post, caller, request.id) if post.era is Era.HANDSHAKE else None
        with self.in_flight.holding(key, answer):
            post.answer(await answer)

    def _note(self, post: Post, caller: Caller, message: Notification | PostedResponse) -> None:
        """Take a message that wants no answer.

        :raises RpcError: its version is not spoken here, or has no such message.
        """
        headers = post.routing_headers()
        check_version(headers)
        is_stateless = any(version in STATELESS_REVISIONS for version in headers.version)
        if isinstance(message, PostedResponse):
            if is_stateless:
                raise RpcError(INVALID_REQUEST, "this server asks nothing, so nothing is answered")
        elif message.method == "notifications/cancelled" and not is_stateless:
            # A stateless client cancels by hanging up.
            key = self._call_key(post, caller, message.params.get("requestId"))
            if key is not None:
                self.in_flight.cancel(key)

    def _call_key(self, post: Post, caller: Caller, request_id: object) -> CallKey | None:
        sessions = post.header(SESSION)
        if len(sessions) != 1 or len(sessions[0]) > MAX_SESSION:
            return None
        if not is_request_id(request_id):
            return None
        return CallKey(caller.account_id, sessions[0], request_id)

    def _report_crash(self) -> RpcError:
        reference = uuid.uuid4().hex[:12]
        self._log.failure("MCP request failed, reference {reference}", reference=reference)
        error = "the service failed; the cause is in its log under the reference"
        return RpcError(INTERNAL_ERROR, error, {"reference": reference}, reference=reference)


def _allowed_origins(public_url: str) -> frozenset[str]:
    """List which web pages may talk to the endpoint: those of this very service.

    A page elsewhere that a browser shows must not reach a daemon on the user's own
    machine, by DNS rebinding for one; so the answer does not depend on the name
    that the request was sent to (MCP, Streamable HTTP, "Security"). A service on
    this machine has all its names.
    """
    url = urlsplit(public_url)
    host = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname or ""
    hosts = _LOOPBACK_NAMES if host in _LOOPBACK_NAMES else (host,)
    is_default = url.port in (None, _DEFAULT_PORTS.get(url.scheme))
    port = "" if is_default else f":{url.port}"
    return frozenset(f"{url.scheme}://{host}{port}" for host in hosts)
