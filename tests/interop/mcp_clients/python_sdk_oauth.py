# mypy: ignore-errors
"""Sign-in of the official Python SDK, 2.x or 1.x, and a call of each tool.

The test acts as the person: it reads the address of the authorization server, and writes the
address to which the browser would be sent.
"""

import asyncio
import contextlib
import json
import sys
from urllib.parse import parse_qs, urlsplit

import mcp
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata

server, redirect_uri, document, client_id, secret, calls = sys.argv[1:]


def tell(step, **facts):
    """Report a step to the test."""
    print(json.dumps({"step": step, **facts}), flush=True)


class Storage:
    """Keeps tokens and the registration in memory."""

    tokens = None
    client = None

    async def get_tokens(self):
        """Return the tokens."""
        return self.tokens

    async def set_tokens(self, tokens):
        """Store the tokens."""
        self.tokens = tokens

    async def get_client_info(self):
        """Return the registration."""
        return self.client

    async def set_client_info(self, client):
        """Store the registration."""
        self.client = client


async def show(url):
    """Show the address to the person."""
    tell("authorize", url=url)


async def answer():
    """Return the answer that the browser brings back."""
    line = await asyncio.to_thread(sys.stdin.readline)
    given = {name: one for name, (one,) in parse_qs(urlsplit(line.strip()).query).items()}
    try:
        from mcp.client.auth import AuthorizationCodeResult
    except ImportError:
        return given["code"], given["state"]
    return AuthorizationCodeResult(**given)


@contextlib.asynccontextmanager
async def connected(auth):
    """Connect a client of either version."""
    if hasattr(mcp, "Client"):
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        async with (
            httpx2.AsyncClient(auth=auth, timeout=70, follow_redirects=True) as http,
            mcp.Client(streamable_http_client(server, http_client=http)) as client,
        ):
            yield client
    else:
        from mcp.client.streamable_http import streamablehttp_client

        async with (
            streamablehttp_client(server, auth=auth) as (read, write, _),
            mcp.ClientSession(read, write) as session,
        ):
            await session.initialize()
            yield session


async def main():
    """Sign in, list the tools, and call each."""
    storage = Storage()
    metadata = OAuthClientMetadata(client_name="Python", redirect_uris=[redirect_uri])
    if client_id:
        method = "client_secret_post" if secret else "none"
        storage.client = OAuthClientInformationFull(
            client_id=client_id,
            client_secret=secret or None,
            redirect_uris=[redirect_uri],
            token_endpoint_auth_method=method,
        )
    auth = OAuthClientProvider(
        server, metadata, storage, show, answer, client_metadata_url=document or None
    )
    async with connected(auth) as client:
        tell("tools", names=[tool.name for tool in (await client.list_tools()).tools])
        # The client believes that its token has expired, and refreshes it.
        auth.context.token_expiry_time = 1
        before = storage.tokens.access_token
        for name, arguments in json.loads(calls):
            called = await client.call_tool(name, arguments)
            text = " ".join(getattr(part, "text", "") for part in called.content)
            failed = getattr(called, "is_error", None) or getattr(called, "isError", None)
            tell("called", name=name, text=f"failed: {text}" if failed else text)
        tell("done", client=storage.client.client_id, is_new=before != storage.tokens.access_token)


asyncio.run(main())
