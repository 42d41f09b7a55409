"""Authentication of API requests (docs/reference/contract.md, "API keys")."""

from tests.house import House
from tests.table import rows


def ask_with(house: House, **headers: str) -> int:
    """Request the inbox with only these headers. Return the status."""
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return house.get("/inbox", key=None, headers=fields).status


def test_either_header_carries_the_key(house: House) -> None:
    """The key is accepted in Authorization: Bearer and in X-API-Key."""
    assert ask_with(house, Authorization=f"Bearer {house.key}") == 200
    assert ask_with(house, X_API_Key=house.key) == 200


@rows("bearer", "BEARER", "Bearer ", " Bearer")
def test_the_scheme_is_read_leniently(house: House, scheme: str) -> None:
    """The case of the scheme and spaces around it are ignored (RFC 9110 11.1)."""
    assert ask_with(house, Authorization=f"{scheme} {house.key} ") == 200


def test_two_different_keys_are_rejected(house: House) -> None:
    """Two different valid keys are 401, because the limits of only one key can apply."""
    other = house.issue_key(house.account)
    answer = house.get(
        "/inbox", key=None, headers={"Authorization": f"Bearer {other}", "X-API-Key": house.key}
    )
    assert answer.status == 401
    assert "different keys" in answer.json["error"]


@rows("Basic dXNlcjpwYXNz", "Digest x", "Bearer", "", "Token abc")
def test_another_scheme_beside_the_key_is_ignored(house: House, other: str) -> None:
    """An Authorization of another scheme, or without credentials, is ignored beside X-API-Key."""
    assert ask_with(house, Authorization=other, X_API_Key=house.key) == 200


@rows("Basic dXNlcjpwYXNz", "Bearer", "Bearer  ", "", "Token abc")
def test_another_scheme_alone_is_rejected(house: House, other: str) -> None:
    """Without a Bearer key or X-API-Key, the error says what to send."""
    answer = house.get("/inbox", key=None, headers={"Authorization": other})
    assert answer.status == 401
    assert "Authorization: Bearer <key> or X-API-Key: <key>" in answer.json["error"]


@rows("key={}", "api_key={}", "apikey={}", "X-API-Key={}", "access_token={}", "token={}")
def test_a_key_in_the_query_is_never_accepted(house: House, query: str) -> None:
    """A key in the URL is rejected, because URLs are stored in logs and histories."""
    assert house.get("/inbox?" + query.format(house.key), key=None).status == 401


@rows(
    ("GET", "/inbox"),
    ("GET", "/inbox/address"),
    ("GET", "/inbox/wait"),
    ("GET", "/inbox/messages"),
    ("DELETE", "/inbox/messages"),
    ("GET", "/inbox/messages/x"),
    ("DELETE", "/inbox/messages/x"),
    ("GET", "/inbox/messages/x/raw"),
    ("GET", "/inbox/messages/x/html"),
    ("GET", "/inbox/messages/x/attachments/1"),
    ("POST", "/inbox/messages/x/share"),
    ("GET", "/nowhere"),
    ("PUT", "/inbox"),
    ("OPTIONS", "/inbox"),
)
def test_every_route_asks_for_the_key_first(house: House, method: str, path: str) -> None:
    """Without a key, every path and method is 401, including unknown ones."""
    answer = house.ask(method, path + "?since=nonsense", key=None).answer()
    assert answer.status == 401
