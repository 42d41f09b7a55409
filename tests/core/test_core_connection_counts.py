"""Connections counted in total and by client."""

from mailcheck.core.memory.client_limits import ConnectionCounts


def test_connections_count_for_their_clients() -> None:
    """Each connection counts once, for its address or IPv6 network, until it is removed."""
    counts: ConnectionCounts[str] = ConnectionCounts()
    counts.add("a", "192.0.2.1")
    counts.add("b", "2001:db8::1")
    counts.add("c", "2001:db8::2")
    assert (len(counts), counts.of_client("192.0.2.1"), counts.of_client("2001:db8::ff")) == (
        3,
        1,
        2,
    )
    counts.remove("b")
    counts.remove("b")
    assert ("b" in counts, "c" in counts) == (False, True)
    assert (len(counts), counts.of_client("2001:db8::1")) == (2, 1)
    counts.remove("a")
    assert counts.of_client("192.0.2.1") == 0
