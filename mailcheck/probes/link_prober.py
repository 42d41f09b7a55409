"""Requests to the links of mails with the guarded dialer.

A check of a link reads the status of each hop, never a body. A one-click unsubscribe request is one
POST, and the beginning of its page is read.

Every hop of a redirect is looked up, checked and dialled anew. Addresses that are not public are
not contacted.
"""

from functools import partial
from urllib.parse import quote, urldefrag, urljoin, urlsplit, urlunsplit

import idna
from treq.content import collect
from twisted.internet.defer import Deferred, succeed
from twisted.web.client import Agent
from twisted.web.http_headers import Headers
from twisted.web.iweb import IResponse

from mailcheck.checks.content.limits import MAX_URL
from mailcheck.checks.link_checks import MAX_REDIRECTS, Hop, LinkAnswer, LinkProblem
from mailcheck.checks.press_unsubscribe import MAX_PAGE, PRESSED_BODY, PressAnswer
from mailcheck.core.instants import MINUTE
from mailcheck.operations.cached_values import CachedValues
from mailcheck.ports.cluster import Memory
from mailcheck.probes.cached_probes import CachedProbes
from mailcheck.probes.fetching import (
    BREAKDOWNS,
    HEADER_ALLOWANCE,
    REDIRECTS,
    USER_AGENT,
    BytesBody,
    WebConnections,
    check_url,
    problem_of,
)
from mailcheck.probes.guarded_dialer import (
    AddressRefused,
    DialFailed,
    FetchFailed,
    FetchProblem,
    GuardedDialer,
    ProbeReactor,
)
from mailcheck.probes.trust import TrustRoots

SECONDS = 9.0
"""Seconds for all hops of a link together."""

AT_ONCE = 50
"""Maximum number of concurrent link checks, of all accounts."""

FRESHNESS = MINUTE
"""Cache lifetime, which spares servers that many mails link to."""

_PROBLEMS = {
    FetchProblem.NO_HOST: LinkProblem.NO_HOST,
    FetchProblem.NO_CONNECTION: LinkProblem.NO_CONNECTION,
    FetchProblem.BAD_CERTIFICATE: LinkProblem.BAD_CERTIFICATE,
    FetchProblem.BAD_REDIRECT: LinkProblem.BAD_URL,
    FetchProblem.TOO_LARGE: LinkProblem.NO_HTTP,
    FetchProblem.NO_HTTP: LinkProblem.NO_HTTP,
    FetchProblem.SILENT: LinkProblem.SILENT,
}
_OURS = frozenset((LinkProblem.BUSY, LinkProblem.SILENT, LinkProblem.NO_AUTHORITIES))
"""Temporary problems, which are not cached."""


class GuardedLinkProber:
    """Implements `mailcheck.ports.probes.LinkProber` with the guarded dialer.

    :param trust: the certificate authorities for https; `None` if there are none.
    """

    def __init__(
        self,
        reactor: ProbeReactor,
        dialer: GuardedDialer,
        trust: TrustRoots | None,
        memory: Memory,
    ) -> None:
        self._reactor = reactor
        self._dialer = dialer
        self._trust = trust
        self._pressing: set[Deferred[PressAnswer]] = set()
        self._probes: CachedProbes[LinkAnswer] = CachedProbes(
            reactor,
            CachedValues(memory, "link", LinkAnswer),
            self._run,
            freshness=FRESHNESS,
            at_once=AT_ONCE,
            is_kept=lambda answer: answer.problem not in _OURS,
            when_busy=partial(_answer_to, problem=LinkProblem.BUSY),
        )

    def probe_link(self, url: str, method: str) -> Deferred[LinkAnswer]:
        """Check a link as `mailcheck.ports.probes.LinkProber` specifies."""
        return self._probes.get(f"{method} {url}")

    def press_unsubscribe(self, url: str) -> Deferred[PressAnswer]:
        """Send the request as `mailcheck.ports.probes.LinkProber` specifies."""
        if len(self._pressing) >= AT_ONCE:
            return succeed(PressAnswer(url, problem=LinkProblem.BUSY))
        received = _Received()

        def too_late(_: object, __: float) -> PressAnswer:
            return received.answer(url, LinkProblem.SILENT)

        pressing = Deferred.fromCoroutine(self._press(url, received))
        self._pressing.add(pressing)
        pressing.addTimeout(SECONDS, self._reactor, too_late)

        def ended(answer: PressAnswer) -> PressAnswer:
            self._pressing.discard(pressing)
            return answer

        return pressing.addBoth(ended)

    def stop(self) -> None:
        """Cancel all running checks."""
        self._probes.stop()
        for pressing in tuple(self._pressing):
            pressing.cancel()

    async def _press(self, url: str, received: "_Received") -> PressAnswer:
        try:
            address = check_url(write_ascii(url), MAX_URL)
        except (FetchFailed, ValueError):
            return PressAnswer(url, problem=LinkProblem.BAD_URL)
        if not self._trust and address.startswith("https:"):
            return PressAnswer(url, problem=LinkProblem.NO_AUTHORITIES)
        connections = WebConnections(
            self._dialer,
            self._trust or TrustRoots(()),
            seconds=SECONDS,
            max_octets=MAX_PAGE + HEADER_ALLOWANCE,
        )
        agent = Agent.usingEndpointFactory(self._reactor, connections)
        headers = Headers({"Accept": ["*/*"], "User-Agent": [USER_AGENT]})
        headers.setRawHeaders("Content-Type", ["application/x-www-form-urlencoded"])
        body = BytesBody(PRESSED_BODY)
        try:
            response = await agent.request(b"POST", address.encode("ascii"), headers, body)
            received.begin(response)
            await collect(response, received.add)
        except AddressRefused:
            return received.answer(url, LinkProblem.NOT_PUBLIC)
        except _Enough:
            pass
        except (DialFailed, *BREAKDOWNS, ValueError) as failure:
            return received.answer(url, _PROBLEMS[problem_of(failure)])
        finally:
            connections.hang_up()
        return received.answer(url)

    async def _run(self, key: str) -> LinkAnswer:
        hops: list[Hop] = []

        def too_late(_: object, __: float) -> LinkAnswer:
            return _answer_to(key, hops, LinkProblem.SILENT)

        following = Deferred.fromCoroutine(self._follow(key, hops))
        return await following.addTimeout(SECONDS, self._reactor, too_late)

    async def _follow(self, key: str, hops: list[Hop]) -> LinkAnswer:
        method, _, url = key.partition(" ")
        for _ in range(MAX_REDIRECTS + 1):
            try:
                address = check_url(write_ascii(url), MAX_URL)
            except (FetchFailed, ValueError):
                problem = LinkProblem.BAD_REDIRECT if hops else LinkProblem.BAD_URL
                return _answer_to(key, hops, problem)
            asked = await self._ask(method, address)
            if isinstance(asked, LinkProblem):
                return _answer_to(key, hops, asked)
            status, location = asked
            hops.append(Hop(url, status))
            if status not in REDIRECTS or not location:
                return _answer_to(key, hops)
            try:
                url = urljoin(url, location)
            except ValueError:
                return _answer_to(key, hops, LinkProblem.BAD_REDIRECT)
        return _answer_to(key, hops, LinkProblem.TOO_MANY_REDIRECTS)

    async def _ask(self, method: str, url: str) -> tuple[int, str] | LinkProblem:
        """Send one request, and return its status and Location, or the problem."""
        if not self._trust and url.startswith("https:"):
            return LinkProblem.NO_AUTHORITIES
        connections = WebConnections(
            self._dialer,
            self._trust or TrustRoots(()),
            seconds=SECONDS,
            max_octets=HEADER_ALLOWANCE,
        )
        agent = Agent.usingEndpointFactory(self._reactor, connections)
        headers = Headers({"Accept": ["*/*"], "User-Agent": [USER_AGENT]})
        try:
            response = await agent.request(method.encode(), url.encode("ascii"), headers)
        except AddressRefused:
            return LinkProblem.NOT_PUBLIC
        except (DialFailed, *BREAKDOWNS, ValueError) as failure:
            return _PROBLEMS[problem_of(failure)]
        finally:
            connections.hang_up()
        locations: list[bytes] = response.headers.getRawHeaders(b"location") or [b""]
        return response.code, locations[0].decode("utf-8", "replace").strip()


class _Enough(Exception):
    pass


class _Received:
    """The part of a response that has arrived. A page that ends early is part of the answer."""

    def __init__(self) -> None:
        self._response: IResponse | None = None
        self._page = bytearray()

    def begin(self, response: IResponse) -> None:
        """Store the status and the header."""
        self._response = response

    def add(self, data: bytes) -> None:
        """Store a part of the page.

        :raises _Enough: the page is long enough.
        """
        self._page += data[: MAX_PAGE - len(self._page)]
        if len(self._page) >= MAX_PAGE:
            raise _Enough

    def answer(self, url: str, problem: LinkProblem | None = None) -> PressAnswer:
        """Return the answer; ``problem`` counts if no response has begun."""
        if self._response is None:
            return PressAnswer(url, problem=problem)
        types = self._response.headers.getRawHeaders(b"content-type") or [b""]
        locations = self._response.headers.getRawHeaders(b"location") or [b""]
        has_text = types[0].strip().lower().startswith((b"text/", b"application/"))
        return PressAnswer(
            url,
            self._response.code,
            locations[0].decode("utf-8", "replace").strip()[:MAX_URL],
            self._page.decode("utf-8", "replace") if has_text else "",
        )


def _answer_to(
    key: str, hops: list[Hop] | tuple[Hop, ...] = (), problem: LinkProblem | None = None
) -> LinkAnswer:
    method, _, url = key.partition(" ")
    return LinkAnswer(url, method, tuple(hops), problem)


def write_ascii(url: str) -> str:
    """Return a URL in ASCII: A-labels and percent-encoding, without the fragment.

    :raises ValueError: the host cannot be encoded.
    """
    parts = urlsplit(urldefrag(url.strip()).url)
    host, port = parts.hostname or "", parts.port
    if not host.isascii():
        host = idna.encode(host, uts46=True).decode("ascii")
    if ":" in host:
        host = f"[{host}]"
    user = "@" if parts.username is not None or parts.password is not None else ""
    place = f"{user}{host}" if port is None else f"{user}{host}:{port}"
    path, query = (quote(part, safe="%/:=&?~+!$,;'@()*[]|") for part in (parts.path, parts.query))
    return urlunsplit((parts.scheme.lower(), place, path or "/", query, ""))
