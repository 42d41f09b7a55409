"""The daemon that commands call, and errors when another server answers at its URL."""

from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, run_command
from tests.servers.http_stub import serving_answers


@pytest.fixture
def key(tmp_path: Path) -> str:
    """A file with a key."""
    path = tmp_path / "key"
    path.write_text("mck_key")
    return str(path)


def asked_at(url: str, key: str) -> Outcome:
    """Request the watches."""
    return run_command("watch", "list", "--url", url, "--key-file", key)


@pytest.mark.parametrize("body", [b"<html>Sign in</html>", b"[]", b'"up"', b"\xff"])
def test_another_server(body: bytes, key: str) -> None:
    """A proxy's page, or other JSON, is named: the result is undetermined, with status 3."""
    with serving_answers((200, body, "")) as url:
        found = asked_at(url, key)
    assert (found.status, found.output) == (3, "")
    assert f"{url}/api/v1 does not respond like mailcheck: " in found.errors
    assert "name it with --url or MAILCHECK_URL" in found.errors


@pytest.mark.parametrize("when", ["Wed, 21 Oct 2015 07:28:00 GMT", "0.1"])
def test_being_put_off(when: str, key: str) -> None:
    """A request with a Retry-After of seconds or a date is repeated, and then answered."""
    watches = b'{"watches": [], "openAlerts": []}'
    with serving_answers((503, b"busy", when), (200, watches, "")) as url:
        found = asked_at(url, key)
    assert (found.status, found.output, found.errors) == (0, "", "")


def test_being_put_off_until_nobody_knows_when(key: str) -> None:
    """With an invalid Retry-After the request is repeated a second later."""
    watches = b'{"watches": [], "openAlerts": []}'
    with serving_answers((503, b"busy", "soon"), (200, watches, "")) as url:
        assert asked_at(url, key).status == 0
