"""Share links need no key, can be revoked, and can neither be guessed nor indexed."""

from urllib.parse import urlsplit

from mailcheck.assembly.workers import Workers
from mailcheck.config.options import WebOptions
from mailcheck.core.identifiers import MessageId
from mailcheck.workers.scheduling import DirectWorker
from tests.house import House, config_in_memory, mail, run
from tests.table import rows
from tests.web.workers import FaultyWorker


def share_path(house: House, raw: bytes | None = None) -> tuple[str, str]:
    """Receive a mail. Return the message's id and the path of its share link."""
    house.receive(house.address("a"), raw=raw)
    message = house.get("/inbox/messages?limit=1").json["messages"][0]
    return message["id"], urlsplit(message["shareUrl"]).path


def test_a_share_link_opens_without_a_key(house: House) -> None:
    """A share link shows the message without a key and without rate limits."""
    message_id, path = share_path(house)
    answer = house.open(path).answer()
    message = house.get(f"/inbox/messages/{message_id}").json
    assert answer.json == message
    assert answer.headers["x-robots-tag"] == "noindex, nofollow"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"
    assert house.open(path, "HEAD").answer().body == b""


def test_a_share_link_needs_no_good_key(house: House) -> None:
    """An invalid key beside a share link is ignored."""
    _, path = share_path(house)
    assert house.open(path, key="wrong").answer().status == 200


def test_revoking_makes_a_new_link(house: House) -> None:
    """POST .../share revokes the link and returns a new one with the same expiry."""
    message_id, old = share_path(house)
    answer = house.ask("POST", f"/inbox/messages/{message_id}/share").answer()
    assert answer.json["id"] == message_id
    assert answer.json["expiresAt"] == "2026-11-22T12:00:00.000Z"
    new = urlsplit(answer.json["shareUrl"]).path
    assert new != old
    assert house.open(old).answer().status == 404
    assert house.open(new).answer().status == 200
    assert house.get(f"/inbox/messages/{message_id}").json["shareUrl"] == answer.json["shareUrl"]
    assert house.get("/inbox/messages").json["messages"][0]["shareUrl"].endswith(new)
    third = house.ask("POST", f"/inbox/messages/{message_id}/share").answer().json["shareUrl"]
    assert house.open(new).answer().status == 404
    assert house.open(urlsplit(third).path).answer().status == 200


@rows("POST", "DELETE", "PUT", "OPTIONS")
def test_a_share_link_is_only_read(house: House, method: str) -> None:
    """A share link does not allow any change."""
    _, path = share_path(house)
    answer = house.open(path, method).answer()
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


def test_links_begin_with_the_public_url() -> None:
    """Share links and attachment URLs begin with the public URL."""
    raw = (
        b"Content-Type: application/pdf\r\nContent-Disposition: attachment; filename=a\r\n\r\nx\r\n"
    )
    house = House(config_in_memory(web=WebOptions(public_url="https://mail.example/check")))
    message_id, path = share_path(house, raw)
    assert path.startswith("/check/share/")
    message = house.get(f"/inbox/messages/{message_id}").json
    assert message["shareUrl"].startswith("https://mail.example/check/share/")
    assert message["attachments"][0]["url"] == (
        f"https://mail.example/check/api/v1/inbox/messages/{message_id}/attachments/1"
    )
    assert house.open(path.removeprefix("/check")).answer().status == 200


def test_a_message_that_goes_while_its_link_is_opened() -> None:
    """A message that is deleted while its link is opened is 404, not a crash."""
    reader = FaultyWorker()
    house = House(config_in_memory(), Workers(DirectWorker(), reader, DirectWorker()))
    large = mail(body="too large to be kept in memory " * 10_000)
    message_id, path = share_path(house, large)
    reader.is_slow, reader.good_calls = True, 1  # the message is found, its content is not yet
    pending = house.open(path)
    run(house.assembly.inbox.delete.one(house.account.id, MessageId(message_id)))
    reader.catch_up()
    assert pending.answer().status == 404
