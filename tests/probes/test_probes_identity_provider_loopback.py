"""Answers of an OpenID Connect provider on this machine, and what each of them means."""

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote, unquote_to_bytes

import pytest
from pytest_twisted import async_yield_fixture
from twisted.internet import reactor
from twisted.internet.ssl import CertificateOptions
from twisted.web.resource import Resource
from twisted.web.server import Request, Site

from mailcheck.ports.identity_provider import ProviderRefused, ProviderSilent, ProviderUnusable
from mailcheck.probes.identity_provider import HttpIdentityProvider
from mailcheck.probes.trust import NoAuthorities, TrustRoots
from tests.servers.certificates import self_signed, server_options
from tests.table import rows

REACTOR: Any = reactor


class Scripted(Resource):
    """Answers each path ``/<status>/<body>`` accordingly."""

    isLeaf = True

    def render(self, request: Request) -> bytes:
        """Return the body that the path names."""
        _, status, body = unquote_to_bytes(request.path).split(b"/", 2)
        request.setResponseCode(int(status))
        request.setHeader("Connection", "close")
        return body


@async_yield_fixture
async def address() -> AsyncIterator[str]:
    """The address of the provider."""
    port = REACTOR.listenTCP(0, Site(Scripted(), timeout=None), interface="127.0.0.1")
    yield f"127.0.0.1:{port.getHost().port}"
    await port.stopListening()


@rows(
    ("200/[]", ProviderUnusable, ""),
    ("200/a page", ProviderUnusable, ""),
    ("302/{}", ProviderUnusable, ""),
    ("404/{}", ProviderRefused, ""),
    ("404/a page", ProviderRefused, ""),
    ('400/{"error": "invalid_grant"}', ProviderRefused, "invalid_grant"),
    ('401/{"error": 7}', ProviderRefused, ""),
    ("429/{}", ProviderSilent, ""),
    ("500/{}", ProviderSilent, ""),
    ("503/a page", ProviderSilent, ""),
)
async def test_answers(address: str, path: str, expected: type[Exception], error: str) -> None:
    """A refusal, an outage, and an address that is not a provider's are told apart."""
    provider = HttpIdentityProvider(REACTOR, lambda: TrustRoots(()))
    with pytest.raises(expected) as caught:
        await provider.get(f"http://{address}/{quote(path)}")
    assert type(caught.value) is expected
    assert getattr(caught.value, "error", "") == error
    assert await provider.get(f"http://{address}/200/%7B%22a%22:1%7D") == {"a": 1}


async def test_a_certificate_that_nobody_vouches_for() -> None:
    """A certificate of an unknown authority is a fault of the configuration, as is none at all."""
    context: CertificateOptions = server_options(self_signed("127.0.0.1"))
    port = REACTOR.listenSSL(0, Site(Scripted(), timeout=None), context, interface="127.0.0.1")
    url = f"https://127.0.0.1:{port.getHost().port}/200/%7B%7D"

    def no_authorities() -> TrustRoots:
        raise NoAuthorities("no file")

    for find_trust in (lambda: TrustRoots(()), no_authorities):
        with pytest.raises(ProviderUnusable):
            await HttpIdentityProvider(REACTOR, find_trust).get(url)
    await port.stopListening()


async def test_no_server(address: str) -> None:
    """A connection that is refused is an outage."""
    closed = REACTOR.listenTCP(0, Site(Scripted(), timeout=None), interface="127.0.0.1")
    number = closed.getHost().port
    await closed.stopListening()
    with pytest.raises(ProviderSilent):
        await HttpIdentityProvider(REACTOR, lambda: TrustRoots(())).get(
            f"http://127.0.0.1:{number}/"
        )
