"""Hostile mail servers at the milter endpoint."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.milter.packets import (
    BODY,
    COMMANDS,
    CONTINUE,
    HEADER,
    MAIL,
    MAX_PACKET,
    BadPacket,
    Packet,
    PacketReader,
    read_envelope_address,
    read_macros,
)
from tests.linear import memory_below
from tests.milter.mail_server import Copies, MailServer, milter_factory
from tests.milter.test_milter_connection import MAIL_TEXT, connected

pytestmark = pytest.mark.attack

ANY_PACKETS = st.lists(
    st.builds(Packet, st.sampled_from(sorted(COMMANDS)), st.binary(max_size=60)), max_size=20
)


@given(st.binary(max_size=300), st.integers(1, 50))
def test_any_octets(octets: bytes, size: int) -> None:
    """Any octets, cut anywhere, are read or end the connection without an error."""
    server = MailServer(milter_factory(Copies()))
    for start in range(0, len(octets), size):
        if not server.is_closed:
            server.protocol.dataReceived(octets[start : start + size])
    server.protocol.connectionLost()


@given(ANY_PACKETS)
def test_any_packets(packets: list[Packet]) -> None:
    """Any commands with any data release all memory, and only let mails go on."""
    copies = Copies()
    server = MailServer(milter_factory(copies))
    server.negotiate()
    for packet in packets:
        if server.is_closed:
            break
        said = server.say(packet.command, packet.data)
        assert said in (b"", CONTINUE) or packet.command in (b"O", MAIL)
    server.protocol.connectionLost()
    assert copies.held == 0


@given(st.integers(1, 40))
def test_a_mail_cut_anywhere(size: int) -> None:
    """A session in pieces of any size is the same session."""
    whole = Copies()
    server = connected(whole)
    server.send_mail(MAIL_TEXT)
    pieces, octets = Copies(), b"".join(server.sent[3:])
    other = connected(pieces)
    for start in range(0, len(octets), size):
        other.protocol.dataReceived(octets[start : start + size])
    assert pieces.queued == whole.queued


@given(st.lists(st.binary(max_size=40), max_size=6), st.integers(1, 9))
def test_packets_in_pieces(datas: list[bytes], size: int) -> None:
    """A reader yields the packets that were written."""
    packets = [Packet(BODY, data) for data in datas]
    octets = b"".join(packet.encoded() for packet in packets)
    reader = PacketReader()
    found = [
        packet
        for start in range(0, len(octets), size)
        for packet in reader.feed(octets[start : start + size])
    ]
    assert found == packets


@given(st.binary(max_size=200))
def test_any_data(data: bytes) -> None:
    """Addresses and macros are read from any octets."""
    assert len(read_envelope_address(data)) <= 1_024
    read_macros(data)


def test_a_length_without_a_packet() -> None:
    """A huge length is rejected before its octets arrive, and a large one is not reserved."""
    with pytest.raises(BadPacket):
        list(PacketReader().feed(b"\x7f\xff\xff\xffB"))
    with memory_below(200_000):
        readers = [PacketReader() for _ in range(100)]
        for reader in readers:
            assert list(reader.feed(MAX_PACKET.to_bytes(4) + b"B")) == []


def test_a_body_without_an_end() -> None:
    """A mail of any size costs no more memory than the maximum."""
    copies = Copies(most=1_000_000)
    server = connected(copies)
    server.say(MAIL, b"<a@b.example>\0")
    with memory_below(4_000_000):
        for _ in range(500):
            server.protocol.dataReceived(Packet(BODY, b"x" * 65_535).encoded())
            server.protocol.dataReceived(Packet(HEADER, b"a\0" + b"y" * 60_000 + b"\0").encoded())


def test_a_mail_server_that_does_not_read() -> None:
    """Nothing more is read from it, so its replies take no more than one buffer."""
    server = MailServer(milter_factory(Copies()))
    server.negotiate()
    transport = server.protocol.transport
    transport.producer.pauseProducing()  # as a full connection does
    assert transport.producerState == "paused"
    transport.producer.resumeProducing()
    assert transport.producerState == "producing"
    server.say(b"Q", b"")
    assert transport.disconnecting
