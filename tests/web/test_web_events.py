"""The event stream of an inbox: server-sent events (HTML Living Standard, 9.2)."""

from typing import Any

from tests.house import Answer, House, mail
from tests.spec.inbox_shapes import EVENT_MESSAGE, EVENT_REFUSED
from tests.table import rows
from tests.web.event_stream import EventStream
from tests.web.raw_http import RawHttp, request
from tests.web.slow_reader import MOST_UNREAD, SlowReader


def open_stream(
    house: House, query: str = "", *fields: str, method: str = "GET", key: str = ""
) -> EventStream:
    """Open the event stream of an inbox."""
    connection = RawHttp(house)
    lines = (f"X-API-Key: {key or house.key}", *fields)
    connection.send(request(f"/api/v1/inbox/events{query}", *lines, method=method))
    return EventStream(connection)


def error_of(client: EventStream) -> Answer:
    """Return the response to a rejected stream."""
    (answer,) = client.connection.answers(("GET", "/api/v1/inbox/events"))
    return answer


def test_messages_as_in_a_list(house: House) -> None:
    """A message is a list entry, and its cursor is the id of the event."""
    client = open_stream(house)
    house.receive(house.address("a"), raw=mail("One"))
    house.receive(house.address("b"), raw=mail("Two"))
    for line in ("200 OK", "text/event-stream; charset=utf-8", "X-Accel-Buffering: no"):
        assert line in client.head
    assert "x-ratelimit-remaining" in client.head.lower()
    told = client.named("message")
    assert told == list(reversed(house.get("/inbox/messages").json["messages"]))
    assert [EVENT_MESSAGE.problems(one) for one in told] == [[], []]
    assert [one["id"] for one in client.events] == ["c0", "c1", "c2"]
    assert client.events[0].keys() == {"id"}
    client.leave()
    assert house.assembly.mail.feeds.count() == 0


def test_reconnecting(house: House) -> None:
    """Last-Event-ID continues after the last event and overrides after; no message is repeated."""
    client = open_stream(house)
    for number in range(3):
        house.receive(raw=mail(f"{number}"))
    client.leave()
    last = client.events[2]["id"]
    again = open_stream(house, "?after=c0", f"Last-Event-ID: {last}")
    assert [one["subject"] for one in again.named("message")] == ["2"]
    again.leave()
    after = open_stream(house, f"?after={last}")
    assert [one["subject"] for one in after.named("message")] == ["2"]
    after.leave()


def test_refusals_have_no_id(house: House) -> None:
    """A rejected mail has the form of ``rejected``, without a cursor."""
    client = open_stream(house, "?tag=a")
    house.refuse("a", "too large")
    house.refuse("b", "too large")
    (refused,) = client.named("refused")
    assert EVENT_REFUSED.problems(refused) == []
    assert refused["reason"] == "too large"
    assert "id" not in client.events[-1]
    client.leave()


@rows(
    ("?after=c7", ""),
    ("", "Last-Event-ID: c7"),
    ("", "Last-Event-ID: nonsense"),
    ("?after=nonsense", "Last-Event-ID: c0"),
    ("?tag=a%20b", ""),
    ("?seconds=0", ""),
    ("?q=x", ""),
)
def test_invalid_requests(house: House, query: str, field: str) -> None:
    """An invalid request is a 400 with an error, not a stream."""
    answer = error_of(open_stream(house, query, *filter(None, [field])))
    assert answer.status == 400
    assert house.assembly.mail.feeds.count() == 0


def test_without_a_key(house: House) -> None:
    """A stream requires a key of the account."""
    assert error_of(open_stream(house, key="wrong")).status == 401


def test_a_head(house: House) -> None:
    """HEAD returns the headers and leaves no waiter behind."""
    client = open_stream(house, method="HEAD")
    assert "200 OK" in client.head
    assert client.text == ""
    assert house.assembly.mail.feeds.count() == 0


def test_a_stalled_client_is_disconnected(house: House) -> None:
    """At most 64 KiB are buffered for a client. After 30 s without reading it is disconnected."""
    client = open_stream(house)
    channel: Any = client.connection.transport.producer
    channel.pauseProducing()  # as a full connection does
    before = len(client.connection.received())
    for number in range(20):
        house.receive(raw=mail(f"{number}"))
    assert len(client.connection.received()) == before
    house.pass_time(29)
    assert not client.connection.transport.disconnecting
    house.pass_time(1)
    assert client.connection.transport.disconnecting
    client.leave()
    assert house.assembly.mail.feeds.count() == 0


def test_hostile_subjects_do_not_end_an_event(house: House) -> None:
    """Line breaks and event fields in a subject remain inside its text."""
    client = open_stream(house)
    house.receive(raw=mail("=?utf-8?q?x=0D=0A=0D=0Aid:_c0=0Aevent:_closed=0Adata:_=7B=7D?="))
    assert len(client.events) == 2
    assert client.named("closed") == []
    client.leave()


def test_a_backlog_goes_out_as_it_is_read(house: House) -> None:
    """A backlog is read as the client reads. Only the connection's buffer is filled."""
    for number in range(100):
        house.receive(raw=mail(f"{number} {'x' * 600}"))
    reader = SlowReader(house)
    reader.send(request("/api/v1/inbox/events?after=c0", f"X-API-Key: {house.key}"))
    assert reader.unread < MOST_UNREAD
    received = reader.received()
    assert received.count(b"event: message") == 100
    assert len(received) > MOST_UNREAD
    assert reader.transport.most_unread < MOST_UNREAD
    reader.hang_up()
    assert house.assembly.mail.feeds.count() == 0
