"""The events of Mailpit's clients over a WebSocket."""

import json
from typing import Any

import pytest
from twisted.internet.defer import CancelledError, Deferred
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, CloseConnection, Ping, Pong, Request, TextMessage

from mailcheck.web.compatible.mailpit.events import MAX_QUEUED, PRUNE, STATISTICS, EventQueue
from tests.web.compatible.open_site import OpenSite, mail
from tests.web.raw_http import RawHttp


class Client:
    """A client of the WebSocket."""

    def __init__(self, site: OpenSite) -> None:
        self._site = site
        self._connection = WSConnection(ConnectionType.CLIENT)
        self.wire = RawHttp(site)
        self._taken = 0
        self.send(Request(host="localhost:8025", target="/api/events"))

    def send(self, event: Any) -> None:
        """Send an event."""
        self.wire.send(self._connection.send(event))

    def events(self) -> list[Any]:
        """Return the events since the last call."""
        self._site.house.clock.advance(0)
        data = self.wire.transport.value()
        self._connection.receive_data(data[self._taken :])
        self._taken = len(data)
        return list(self._connection.events())

    def texts(self) -> list[Any]:
        """Return the JSON of the events since the last call."""
        return [json.loads(one.data) for one in self.events() if isinstance(one, TextMessage)]


@pytest.fixture
def client(site: OpenSite) -> Client:
    """A connected client."""
    client = Client(site)
    accepted, *_, stats = client.events()
    assert isinstance(accepted, AcceptConnection)
    assert isinstance(stats, TextMessage | Ping)
    return client


def test_a_new_message_is_an_event(site: OpenSite, client: Client) -> None:
    """A mail to two recipients is one new message, followed by the numbers of messages."""
    site.send("jane@customer.example", "joe@customer.example")
    new, stats = client.texts()
    assert (new["Type"], new["Data"]["Subject"]) == ("new", "Welcome")
    assert new["Data"]["ID"] == site.get("/api/v1/messages").json["messages"][0]["ID"]
    assert stats["Type"] == "stats"
    assert (stats["Data"]["Total"], stats["Data"]["Unread"]) == (1, 1)
    site.send(raw=mail("Second"))
    assert [one["Type"] for one in client.texts()] == ["new", "stats"]


def test_a_deletion_is_an_event(site: OpenSite, client: Client) -> None:
    """After a deletion the numbers are sent again."""
    site.send()
    site.send()
    ids = {one["ID"] for one in site.get("/api/v1/messages").json["messages"]}
    client.texts()
    found = site.ask("DELETE", "/api/v1/search?query=subject:welcome").answer()
    *deleted, stats = client.texts()
    assert (found.body, stats["Data"]["Total"]) == (b"ok", 0)
    assert [one["Type"] for one in deleted] == ["delete", "delete"]
    assert {one["Data"]["ID"] for one in deleted} == ids
    site.send()
    client.texts()
    site.ask("DELETE", "/api/v1/messages").answer()
    truncate, stats = client.texts()
    assert (truncate, stats["Data"]["Total"]) == ({"Type": "truncate", "Data": None}, 0)


def test_a_deletion_by_others_is_an_event(site: OpenSite, client: Client) -> None:
    """Of messages that another program deletes, only the fact is told."""
    site.send()
    (message,) = site.get("/api/v2/messages").json["items"]
    client.texts()
    site.ask("DELETE", f"/api/v1/messages/{message['ID']}").answer()
    prune, stats = client.texts()
    assert (prune, stats["Data"]["Total"]) == ({"Type": "prune", "Data": None}, 0)


def test_marks_and_tags_are_events(site: OpenSite, client: Client) -> None:
    """A message that is read, marked or tagged is told with what has changed."""
    site.send("ann+a@customer.example")
    (message,) = site.get("/api/v1/messages").json["messages"]
    client.texts()
    site.get(f"/api/v1/message/{message['ID']}")
    update, stats = client.texts()
    assert update == {"Type": "update", "Data": {"ID": message["ID"], "Read": True}}
    assert stats["Data"]["Unread"] == 0
    for body, types in (
        ({"IDs": [message["ID"]], "Read": True}, ["update", "stats"]),
        ({"Search": "subject:welcome", "Read": False}, ["update", "stats"]),
        ({"Read": True}, ["stats"]),
        ({"IDs": ["unknown"], "Read": True}, ["stats"]),
    ):
        site.ask("PUT", "/api/v1/messages", json=body).answer()
        assert [one["Type"] for one in client.texts()] == types, body
    site.ask("PUT", "/api/v1/tags", json={"IDs": [message["ID"], "no"], "Tags": ["x"]}).answer()
    (update,) = client.texts()
    assert update["Data"] == {"ID": message["ID"], "Tags": ["a", "x"]}
    site.ask("PUT", "/api/v1/tags/x", json={"Name": "y"}).answer()
    site.ask("DELETE", "/api/v1/tags/y").answer()
    assert [one["Type"] for one in client.texts()] == ["prune", "prune"]


def test_events_that_a_client_does_not_read() -> None:
    """They wait within a limit; then one event that lists have changed takes their place."""
    queue = EventQueue()
    for _ in range(40):
        queue.put(b"x" * (MAX_QUEUED // 32))
    taken = [Deferred.fromCoroutine(queue.take()) for _ in range(10)]
    found = [one.result for one in taken if one.called]
    assert found[:2] == [PRUNE, STATISTICS]
    assert len(found) < 10
    for one in taken:
        one.addErrback(lambda failure: failure.trap(CancelledError))
        one.cancel()


def test_an_idle_connection_is_kept_alive(site: OpenSite, client: Client) -> None:
    """The server sends pings, and answers those of the client."""
    client.events()
    for _ in range(4):
        site.pass_time(5)
    assert any(isinstance(one, Ping) for one in client.events())
    client.send(Ping(b"x"))
    assert [one.payload for one in client.events() if isinstance(one, Pong)] == [b"x"]


def test_a_client_closes_the_connection(site: OpenSite, client: Client) -> None:
    """The close is answered, and the connection is not counted any more."""
    assert len(site.site.connections) == 1
    client.send(CloseConnection(1000))
    assert any(isinstance(one, CloseConnection) for one in client.events())
    assert client.wire.transport.disconnecting
    client.wire.hang_up()
    assert len(site.site.connections) == 0
    assert not site.house.assembly.mail.feeds.waiters()


def test_a_client_that_vanishes_is_forgotten(site: OpenSite, client: Client) -> None:
    """Nothing waits for mail on its behalf."""
    client.events()
    client.wire.hang_up()
    assert not site.house.assembly.mail.feeds.waiters()
    site.send()


def test_nonsense_ends_the_connection(client: Client) -> None:
    """Bytes that are no frame close it."""
    client.wire.send(b"\xff" * 50)
    assert client.wire.transport.disconnecting


def test_the_daemon_stops(site: OpenSite, client: Client) -> None:
    """The client is told that the server is going away."""
    client.events()
    site.house.assembly.mail.feeds.close()
    closes = [one for one in client.events() if isinstance(one, CloseConnection)]
    assert [one.code for one in closes] == [1001]
