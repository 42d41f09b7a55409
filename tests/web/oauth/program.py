"""An OAuth client for tests: a program that a person connects in a browser."""

import html
import json
import re
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from mailcheck.config.options import WebOptions
from mailcheck.core.oauth.clients import Client
from mailcheck.core.oauth.grants import challenge_of
from tests.house import Answer, House, config_in_memory, run
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.conftest import CHEAP
from tests.web.raw_http import RawHttp

ISSUER = "https://mail.example"
RESOURCE = f"{ISSUER}/mcp"
CALLBACK = "https://agent.example/callback"
VERIFIER = "v" * 43
ALL = "inbox:read inbox:write tests domains watches webhooks"


def oauth_house(**web: Any) -> House:
    """Return a house with OAuth, whose public URL is `ISSUER`."""
    web = {"public_url": ISSUER, **web}
    return House(config_in_memory(accounts=CHEAP, web=WebOptions(**web)))


def add_client(
    house: House, *redirect_uris: str, name: str = "Agent", has_secret: bool = False
) -> tuple[Client, str]:
    """Register a client as the operator; return it with its secret."""
    clients = house.assembly.accounts.oauth_clients
    uris = redirect_uris or (CALLBACK,)
    made = run(clients.add(name, uris, has_secret=has_secret))
    return made.client, made.secret


class Program:
    """A program with a client id, and the browser of the person who connects it."""

    def __init__(
        self,
        browser: Browser,
        client_id: str,
        secret: str = "",
        redirect_uri: str = CALLBACK,
        peer: str = "192.0.2.200",
    ) -> None:
        self.house = browser.house
        self.browser = browser
        self.client_id = client_id
        self.secret = secret
        self.redirect_uri = redirect_uri
        self.peer = peer

    def query(self, **changes: str | None) -> str:
        """Return the query of an authorization request. `None` leaves a parameter out."""
        parameters: dict[str, str | None] = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "state": "a state",
            "code_challenge": challenge_of(VERIFIER),
            "code_challenge_method": "S256",
            "resource": RESOURCE,
            **changes,
        }
        return urlencode({name: one for name, one in parameters.items() if one is not None})

    def ask(self, **changes: str | None) -> Answer:
        """Open the page of consent."""
        return self.browser.open(f"/authorize?{self.query(**changes)}")

    def submit(
        self, decision: str = "allow", scope: str = "", account: str = "", replace: str = ""
    ) -> Answer:
        """Press a button on the page of consent that the browser shows."""
        form = [
            ("form-token", self.browser.page.form_token),
            ("query", self.browser.page.fields["query"]),
            ("account", account or self.browser.page.fields["account"]),
            ("decision", decision),
            *(("scope", one) for one in (scope or ALL).split()),
            *(("replace", one) for one in replace.split()),
        ]
        return self.browser.send("POST", "/authorize", urlencode(form).encode())

    def code(self, **changes: str | None) -> str:
        """Let the person allow everything, and return the code."""
        shown = self.ask(**changes)
        assert shown.status == 200, shown.body.decode()
        return returned(self.submit())["code"]

    def post(self, path: str, form: dict[str, str], *headers: str) -> Answer:
        """Send a form to an endpoint."""
        body = urlencode(form).encode()
        fields = (
            "Content-Type: application/x-www-form-urlencoded",
            f"Content-Length: {len(body)}",
            *headers,
        )
        connection = RawHttp(self.house, self.peer)
        return connection.ask(path, *fields, method="POST", body=body)

    def exchange(self, code: str, **changes: str) -> Answer:
        """Exchange a code."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.redirect_uri,
            "code_verifier": VERIFIER,
            **self.credentials,
            **changes,
        }
        return self.post("/token", form)

    def refresh(self, refresh_token: str, **changes: str) -> Answer:
        """Exchange a refresh token."""
        form = {
            "grant_type": "refresh_token",
            "refresh_token": refresh_token,
            **self.credentials,
            **changes,
        }
        return self.post("/token", form)

    def revoke(self, token: str) -> Answer:
        """Revoke a token."""
        return self.post("/revoke", {"token": token, **self.credentials})

    @property
    def credentials(self) -> dict[str, str]:
        """Return the form fields that identify the client."""
        secret = {"client_secret": self.secret} if self.secret else {}
        return {"client_id": self.client_id, **secret}

    def connect(self, **changes: str | None) -> dict[str, Any]:
        """Let the person allow everything, and return the tokens."""
        answer = self.exchange(self.code(**changes))
        assert answer.status == 200, answer.body
        tokens: dict[str, Any] = answer.json
        return tokens


def address_of(answer: Answer) -> str:
    """Return the address to which a page leads."""
    (found,) = re.findall(r'<a class="button" id="continue" href="([^"]*)"', answer.body.decode())
    address = html.unescape(found)
    refreshes = re.findall(
        r'<meta http-equiv="refresh" content="0; url=([^"]*)"', answer.body.decode()
    )
    assert [html.unescape(one) for one in refreshes] in ([], [address])
    return address


def returned(answer: Answer) -> dict[str, str]:
    """Return the parameters that a page gives to the program."""
    address = address_of(answer)
    return dict(parse_qsl(urlsplit(address).query, strict_parsing=True))


def register(house: House, metadata: object, peer: str = "192.0.2.200") -> Answer:
    """Register a client by its own request."""
    body = metadata if isinstance(metadata, bytes) else json.dumps(metadata).encode()
    fields = ("Content-Type: application/json", f"Content-Length: {len(body)}")
    return RawHttp(house, peer).ask("/register", *fields, method="POST", body=body)
