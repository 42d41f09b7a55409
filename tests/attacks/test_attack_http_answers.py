"""Clients that request much and read nothing: memory is limited, and the connection ends."""

import json

import pytest

from mailcheck.api.shapes import CHUNK
from mailcheck.operations.concurrency import REST
from mailcheck.web.site.connections import IDLE_TIMEOUT
from mailcheck.web.site.response_buffers import MAX_BUFFERED, MAX_BUFFERED_OF_CLIENT
from tests.house import House, mail
from tests.table import rows
from tests.web.raw_http import RawHttp, request
from tests.web.slow_reader import FULL, MOST_UNREAD, SlowReader

pytestmark = pytest.mark.attack

MIB = 1024 * 1024

LARGE = mail(body="0123456789abcde\r\n" * (3 * MIB // 17))

LIBRARY = "/clients/mailcheck_client.py"
"""A resource of some kilobytes that needs no key."""


def receive(house: House, raw: bytes = LARGE) -> str:
    """Receive a mail, and return the path of its bytes."""
    house.receive(raw=raw)
    newest = house.get("/inbox/messages").json["messages"][0]
    return f"/api/v1/inbox/messages/{newest['id']}/raw"


def ask(house: House, path: str, *headers: str, peer: str = "127.0.0.1") -> SlowReader:
    """Send a request without reading the response."""
    client = SlowReader(house, peer)
    client.send(request(path, f"X-API-Key: {house.key}", *headers))
    for _ in range(len(LARGE) // CHUNK + 2):  # reactor turns in which its JSON is written
        house.pass_time(REST)
    return client


def test_a_long_text_is_written_in_turns_with_all_else(house: House) -> None:
    """The JSON of a large mail is written in as many reactor turns as it has pieces.

    Other requests are answered between the turns, and many clients of one mail share the turns.
    """
    path = receive(house).removesuffix("/raw").removeprefix("/api/v1")
    readers = [house.ask("GET", path) for _ in range(10)]
    turns = 0
    while not any(reader.is_answered for reader in readers):
        assert house.open("/healthz").is_answered
        house.pass_time(REST)
        turns += 1
    answers = [reader.answer() for reader in readers]
    pieces = len(answers[0].json["text"]) // CHUNK
    assert pieces <= turns <= pieces + 2
    assert {answer.body for answer in answers} == {answers[0].body}


def test_an_unread_answer_is_not_heaped_up_in_its_connection(house: House) -> None:
    """About 64 KiB of an unread response are buffered at most, and it arrives whole when read."""
    path = receive(house)
    client = ask(house, path)
    assert FULL < client.unread <= MOST_UNREAD
    assert json.loads(client.answers(("GET", path))[0].body)["raw"].encode() == LARGE
    assert client.transport.most_unread <= MOST_UNREAD
    assert house.site.response_buffers.size == 0


def require_cut_off(house: House, client: SlowReader) -> None:
    """Fail unless the connection of a client that reads nothing is closed at its timeout."""
    house.pass_time(IDLE_TIMEOUT - 1)
    assert client.unread
    assert not client.is_closed
    house.pass_time(1)
    assert client.unread
    assert client.is_closed
    assert not house.clock.getDelayedCalls()


def test_who_reads_nothing_is_cut_off(house: House) -> None:
    """The connection of a client that reads nothing is closed, and its buffers are freed."""
    path = receive(house)
    client = ask(house, path)
    assert house.site.response_buffers.size > len(LARGE)
    require_cut_off(house, client)
    assert house.site.response_buffers.size == 0


def test_who_reads_slowly_is_not_cut_off(house: House) -> None:
    """A client that reads slowly gets the whole response, however long that takes."""
    path = receive(house)
    client = ask(house, path)
    while house.site.response_buffers.size:
        house.pass_time(IDLE_TIMEOUT - 1)
        assert client.read(MOST_UNREAD)
    house.pass_time(IDLE_TIMEOUT - 1)
    assert client.answers(("GET", path))[0].status == 200
    assert not client.is_closed


@rows("", LIBRARY)
def test_who_asked_for_the_end_and_does_not_read_is_cut_off(house: House, path: str) -> None:
    """The last response of an unread connection times out, whether it is small or large."""
    path = path or receive(house)
    require_cut_off(house, ask(house, path, "Connection: close"))


def test_unread_answers_stop_the_requests_behind_them(house: House) -> None:
    """Hundreds of pipelined requests of a client that does not read use one connection's buffer."""
    client = SlowReader(house)
    count = 150
    client.send(request(LIBRARY) * count)
    assert client.transport.most_unread <= MOST_UNREAD
    answers = client.answers(*[("GET", LIBRARY)] * count)
    assert [answer.status for answer in answers] == [200] * count
    assert len({answer.body for answer in answers}) == 1
    assert client.transport.most_unread <= MOST_UNREAD


def test_who_goes_away_is_owed_nothing(house: House) -> None:
    """A client that disconnects during a response leaves no buffer behind."""
    path = receive(house)
    client = ask(house, path)
    client.read()
    client.hang_up()
    assert house.site.response_buffers.size == 0
    assert not house.clock.getDelayedCalls()


def test_one_client_is_not_sent_everything_at_once(house: House) -> None:
    """A client with too much unread data gets 503 for large resources until it has read."""
    path, greedy = receive(house), "203.0.113.7"
    let_go = house.site.response_buffers.hold(bytes(MAX_BUFFERED_OF_CLIENT - MIB), greedy, print)
    client = ask(house, path, peer=greedy)
    refused = client.answers(("GET", path))[0]
    assert refused.status == 503
    assert int(refused.headers["retry-after"]) > 0
    assert "content-disposition" not in refused.headers
    assert RawHttp(house, greedy).ask(LIBRARY).status == 200
    assert ask(house, path, peer="203.0.113.8").answers(("GET", path))[0].status == 200
    let_go()
    assert ask(house, path, peer=greedy).answers(("GET", path))[0].status == 200


def test_all_clients_together_are_not_sent_everything_at_once(house: House) -> None:
    """The unread data of all clients together is limited."""
    path, count = receive(house), 256
    let_go = [
        house.site.response_buffers.hold(bytes(MAX_BUFFERED // count), f"203.0.113.{number}", print)
        for number in range(count)
    ]
    assert ask(house, path, peer="198.51.100.1").answers(("GET", path))[0].status == 503
    for one in let_go:
        one()
    assert ask(house, path, peer="198.51.100.1").answers(("GET", path))[0].status == 200


def test_a_few_slow_clients_keep_nobody_from_his_answer(house: House) -> None:
    """The client with the most unread data is disconnected when others request less."""
    path = receive(house)
    slow = ask(house, path, peer="203.0.113.7")
    greedy = [f"203.0.113.{number}" for number in (7, 8, 9, 10)]
    for peer in greedy:
        house.site.response_buffers.hold(bytes(MAX_BUFFERED_OF_CLIENT - MIB), peer, print)
    before = house.site.response_buffers.size
    answer = ask(house, path, peer="198.51.100.1").answers(("GET", path))[0]
    assert answer.status == 200
    assert json.loads(answer.body)["raw"].encode() == LARGE
    assert slow.unread
    assert slow.is_closed
    assert house.site.response_buffers.size < before
