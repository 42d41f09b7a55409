"""Redirect URIs, URLs of client metadata documents, metadata, scopes and resources."""

import json

import pytest

from mailcheck.core.errors import InvalidParameter
from mailcheck.core.instants import Instant
from mailcheck.core.oauth.clients import (
    Client,
    ClientMetadata,
    ClientSource,
    add_parameters,
    describe_redirect,
    is_document_url,
    parse_metadata,
    read_document,
    require_redirect_uri,
)
from mailcheck.core.oauth.grants import (
    OFFERED,
    OAuthRefused,
    challenge_of,
    choose_scopes,
    is_challenge,
    is_verifier,
    require_resource,
)
from mailcheck.core.rights import Scope
from tests.table import rows

URL = "https://agent.example/client.json"


def client(*uris: str) -> Client:
    """Return a client with redirect URIs."""
    return Client("a", "A", " ".join(uris), ClientSource.OPERATOR, False, Instant(0))


GOOD = {
    "https://agent.example/callback": "agent.example",
    "https://agent.example:8443/cb?x=1&y=%20": "agent.example:8443",
    "http://127.0.0.1:3000/callback": "a program on your own computer",
    "http://[::1]/callback": "a program on your own computer",
    "http://localhost/callback": "a program on your own computer",
    "cursor://anysphere.cursor/oauth": "the program for cursor: links",
    "com.example.app:/callback": "the program for com.example.app: links",
}
BAD = [
    "",
    "http://agent.example/callback",
    "http://127.0.0.1.evil.example/",
    "http://localhost.evil.example/",
    "https://agent.example/#fragment",
    "https://user@agent.example/",
    "https://user:secret@agent.example/",
    "https:///callback",
    "https://agent.example:0/",
    "https://agent.example:99999/",
    "https://[::1/",
    "//agent.example/callback",
    "/callback",
    "agent.example",
    "javascript:alert(1)",
    "javascript://agent.example/%0aalert(1)",
    "JavaScript://agent.example/%0aalert(1)",
    "data:text/html,x",
    "data://agent.example/",
    "vbscript:/x",
    "file:///etc/passwd",
    "blob:https://agent.example/x",
    "view-source:/x",
    "mailto:a@agent.example",
    "ftp://agent.example/",
    "cursor:callback",
    "https://agent.example/ x",
    "https://agent.example/\r\nSet-Cookie: a=b",
    "https://agent.example/\\evil",
    'https://agent.example/"onload="x',
    "https://agent.example/<script>",
    "https://\u0430gent.example/",
    "https://agent.example/" + "a" * 1_000,
]


@rows(*GOOD)
def test_a_redirect_uri(uri: str) -> None:
    """https, http on a loopback address and own schemes are accepted, and described."""
    assert require_redirect_uri(uri) == uri
    assert describe_redirect(uri) == GOOD[uri]
    assert client(uri).accepts_redirect(uri)


@rows(*BAD)
def test_a_bad_redirect_uri(uri: str) -> None:
    """Any other redirect URI is rejected with a message that names it."""
    with pytest.raises(InvalidParameter, match="the redirect URI"):
        require_redirect_uri(uri)
    assert not client("https://agent.example/callback").accepts_redirect(uri)


@rows(
    ("http://127.0.0.1/cb", "http://127.0.0.1:5000/cb", True),
    ("http://127.0.0.1:1/cb", "http://127.0.0.1:5000/cb", True),
    ("http://localhost/cb", "http://localhost:5000/cb", True),
    ("http://127.0.0.1/cb", "http://localhost:5000/cb", False),
    ("http://127.0.0.1/cb", "http://127.0.0.1:5000/other", False),
    ("http://127.0.0.1/cb", "http://127.0.0.1:5000/cb?x=1", False),
    ("http://127.0.0.1/cb", "https://127.0.0.1:5000/cb", False),
    ("http://127.0.0.1/cb", "http://user@127.0.0.1:5000/cb", False),
    ("https://agent.example/cb", "https://agent.example:8443/cb", False),
    ("https://agent.example/cb", "https://agent.example/cb/", False),
    ("https://agent.example/cb", "https://agent.example/CB", False),
    ("https://agent.example/cb", "https://agent.example/cb?x", False),
    ("https://agent.example/cb", "https://agent.example/", False),
    ("cursor://x/y", "cursor://x:1/y", False),
)
def test_comparison_is_exact(known: str, uri: str, is_accepted: bool) -> None:
    """Redirect URIs are compared exactly, except for the port of a loopback address."""
    assert client("https://other.example/", known).accepts_redirect(uri) is is_accepted


def test_parameters_are_added() -> None:
    """Parameters follow those of the redirect URI, and are encoded."""
    assert (
        add_parameters("https://a.example/cb", {"code": "x y"}) == "https://a.example/cb?code=x+y"
    )
    added = add_parameters("https://a.example/cb?a=1", {"state": "&b=2"})
    assert added == "https://a.example/cb?a=1&state=%26b%3D2"


@rows(
    (URL, True),
    ("https://agent.example:8443/a/b?c", True),
    ("https://agent.example", False),
    ("https://agent.example/", False),
    ("http://agent.example/client.json", False),
    ("HTTPS://agent.example/client.json", False),
    ("https://user@agent.example/client.json", False),
    ("https://agent.example/a/../b", False),
    ("https://agent.example/a/%2e%2E/b", False),
    ("https://agent.example/./b", False),
    ("https://agent.example/a#b", False),
    ("https://agent.example/\u00e4", False),
    ("https://agent.example/" + "a" * 500, False),
    ("https:///client.json", False),
    ("https://[::1/client.json", False),
    ("abcdefghijklm", False),
    ("", False),
)
def test_the_url_of_a_document(url: str, is_one: bool) -> None:
    """A client id is the URL of a document if it is https, has a path and is normalized."""
    assert is_document_url(url) is is_one


def test_a_document() -> None:
    """A document at its own URL gives the name and the redirect URIs; other members are ignored."""
    document = {
        "client_id": URL,
        "client_name": "Agent\u202e\n",
        "redirect_uris": ["https://agent.example/cb", "http://localhost/cb"],
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
        "logo_uri": "https://agent.example/logo.png",
        "jwks": {"keys": []},
    }
    found = read_document(URL, json.dumps(document).encode())
    assert (found.problem, found.name) == ("", "Agent")
    assert found.redirect_uris == "https://agent.example/cb http://localhost/cb"


@rows(
    ({"client_id": "https://evil.example/client.json"}, "evil.example"),
    ({"client_id": URL + "?"}, "not its URL"),
    ({"client_id": None}, "not its URL"),
    ({"client_secret": "x"}, "client_secret"),
    ({"token_endpoint_auth_method": "client_secret_post"}, "token_endpoint_auth_method"),
    ({"redirect_uris": []}, "1 to 10"),
    ({"redirect_uris": ["https://a.example/"] * 11}, "1 to 10"),
    ({"redirect_uris": ["javascript:alert(1)"]}, "javascript"),
    ({"redirect_uris": "https://a.example/"}, "not valid"),
    ({"redirect_uris": [1]}, "not valid"),
    ({"client_name": 1}, "not valid"),
    ({"grant_types": ["implicit"]}, "authorization_code"),
    ({"response_types": ["token"]}, "response_types"),
)
def test_a_document_that_cannot_be_used(changes: dict[str, object], problem: str) -> None:
    """The problem of a document is named."""
    document = {"client_id": URL, "redirect_uris": ["https://agent.example/cb"], **changes}
    found = read_document(URL, json.dumps(document).encode())
    assert problem in found.problem
    assert found.redirect_uris == ""


@rows(b"", b"null", b"[]", b"{", b"\xff\xfe", b"[" * 10_000, b'{"a":' * 10_000, b'{"x": NaN}')
def test_metadata_that_is_not_json(body: bytes) -> None:
    """Anything else than an object is rejected, however deep it is."""
    with pytest.raises(InvalidParameter, match="metadata is not valid"):
        parse_metadata(body)


def test_null_is_absent() -> None:
    """A null in the metadata of a client counts as absent."""
    names = [name for name in ClientMetadata.__struct_fields__ if name != "redirect_uris"]
    body = json.dumps({**dict.fromkeys(names), "redirect_uris": ["https://agent.example/cb"]})
    assert parse_metadata(body.encode()).require_usable() == "https://agent.example/cb"


@rows(
    (None, "unnamed program"),
    (" \u200b\n", "unnamed program"),
    ("x" * 100, "x" * 60),
    ("<b>Agent</b>", "<b>Agent</b>"),
)
def test_the_name_of_a_client(given: str | None, shown: str) -> None:
    """A name is short and printable."""
    assert ClientMetadata(client_name=given).name == shown


def test_scopes() -> None:
    """Known scopes are chosen in their order, and all of them if none is known."""
    assert choose_scopes("domains inbox:read openid") == (Scope.INBOX_READ, Scope.DOMAINS)
    for asked in ("", "openid offline_access", "INBOX:READ", "metrics:read"):
        assert choose_scopes(asked) == OFFERED


@rows(
    (),
    ("https://mail.example/mcp",),
    ("https://mail.example/mcp/",),
    ("HTTPS://MAIL.example:443/mcp", "https://mail.example/mcp"),
)
def test_the_resource(named: tuple[str, ...]) -> None:
    """The same resource may be written in several ways, and naming none is naming it."""
    require_resource(named, "https://mail.example/mcp")


@rows(
    "https://mail.example",
    "https://mail.example/MCP",
    "http://mail.example/mcp",
    "https://mail.example:8443/mcp",
    "https://mail.example/mcp/x",
    "https://mail.example/mcp?x",
    "https://mail.example/mcp#x",
    "https://user@mail.example/mcp",
    "https://mail.example.evil.example/mcp",
    "https://[::1/mcp",
    "",
)
def test_another_resource(named: str) -> None:
    """Another resource is refused, also beside the right one."""
    for names in ((named,), ("https://mail.example/mcp", named)):
        with pytest.raises(OAuthRefused) as caught:
            require_resource(names, "https://mail.example/mcp")
        assert caught.value.code == "invalid_target"


def test_pkce() -> None:
    """The challenge of RFC 7636 appendix B, and the forms of verifiers and challenges."""
    verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    assert challenge_of(verifier) == challenge
    assert is_challenge(challenge)
    assert is_verifier(verifier)
    for bad in ("", "a" * 42, "a" * 129, "a" * 42 + "+", "a" * 42 + "\u00e4", "a" * 43 + "\n"):
        assert not is_verifier(bad)
        assert not is_challenge(bad)
