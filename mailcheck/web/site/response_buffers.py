"""Responses that their clients have not read yet: the memory for them, and their flow control."""

from collections import Counter, deque
from collections.abc import Callable, Sized

from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer

from mailcheck.core.memory.client_limits import largest_holder

CHUNK = 32_768
"""Number of bytes that are written to a connection at once. Twisted pauses a writer at 64 KiB of
unread data. Responses up to this size are not split."""

MAX_BUFFERED = 268_435_456
"""Maximum number of bytes of all responses that wait unread, of all doors together. The largest
response fits ten times."""

MAX_BUFFERED_OF_CLIENT = 67_108_864
"""Maximum number of bytes that wait unread for one client. The largest response fits twice, and
three more such clients can be served."""

STALLED = 65_536
"""Number of bytes at which the write buffer of a connection is full."""


class StalledStream:
    """The unread data of a stream. Its size counts like that of a buffered response."""

    def __len__(self) -> int:
        return STALLED


class _BufferedBodies:
    """Distinct bodies and the number of responses that share each. Waits for a mail share one."""

    def __init__(self) -> None:
        self._shares: Counter[int] = Counter()
        self.size = 0

    def size_with(self, body: Sized) -> int:
        return self.size if id(body) in self._shares else self.size + len(body)

    def add(self, body: Sized) -> None:
        self.size = self.size_with(body)
        self._shares[id(body)] += 1

    def remove(self, body: Sized) -> None:
        self._shares[id(body)] -= 1
        if not self._shares[id(body)]:
            del self._shares[id(body)]
            self.size -= len(body)


class _BodiesOfClient(_BufferedBodies):
    """The bodies of one client, and the functions that end their responses, the oldest first."""

    def __init__(self) -> None:
        super().__init__()
        self.endings: dict[object, Callable[[], None]] = {}


class ResponseBuffers:
    """The memory for responses that their clients have not read yet.

    A single response may always be buffered, even if it exceeds the maximum.
    """

    def __init__(self, in_all: int = MAX_BUFFERED, of_client: int = MAX_BUFFERED_OF_CLIENT) -> None:
        self._in_all = in_all
        self._of_client = of_client
        self._all = _BufferedBodies()
        self._clients: dict[str, _BodiesOfClient] = {}

    @property
    def size(self) -> int:
        """The number of buffered bytes."""
        return self._all.size

    def make_room_for(self, body: Sized, client: str) -> bool:
        """Return whether another response to a client can be buffered.

        If the memory is full, the oldest responses of the client with the most memory are
        aborted, as long as it uses more than this client would. So slow readers of large
        responses do not block small responses to others.
        """
        of_client = self._clients.get(client, _BufferedBodies())
        size = of_client.size_with(body)
        if of_client.size and size > self._of_client:
            return False
        while self._all.size and self._all.size_with(body) > self._in_all:
            largest = largest_holder(self._clients.values())
            if largest.size <= size:
                return False
            next(iter(largest.endings.values()))()
        return True

    def hold(self, body: Sized, client: str, hang_up: Callable[[], object]) -> Callable[[], None]:
        """Add a response to the buffers. Return a function that removes it.

        ``hang_up`` aborts the response to make room for others.
        """
        of_client = self._clients.setdefault(client, _BodiesOfClient())
        ticket = object()
        for bodies in (self._all, of_client):
            bodies.add(body)

        def release() -> None:
            if of_client.endings.pop(ticket, None) is None:
                return  # it was aborted to make room
            for bodies in (self._all, of_client):
                bodies.remove(body)
            if not of_client.size:
                self._clients.pop(client, None)

        def end() -> None:
            release()
            hang_up()

        of_client.endings[ticket] = end
        return release


@implementer(IPushProducer)
class PacedBody:
    """A producer that writes a body in chunks while the connection accepts data.

    :param is_paused: whether the connection is already full.
    :param on_progress: called whenever the client has read the data written so far.
    :param on_end: called when everything has been written.
    """

    def __init__(
        self,
        write: Callable[[bytes], None],
        on_progress: Callable[[], None],
        on_end: Callable[[], None],
        *,
        is_paused: bool,
    ) -> None:
        self._write = write
        self._on_progress = on_progress
        self._on_end = on_end
        self._is_paused = is_paused
        self._bodies: deque[bytes] = deque()
        self._sent = 0

    def add(self, body: bytes) -> None:
        """Append a body to those that are being written."""
        self._bodies.append(body)

    def start(self) -> None:
        """Begin to write."""
        self._write_chunks()

    def pauseProducing(self) -> None:  # noqa: N802
        """Pause, because the connection is full."""
        self._is_paused = True

    def resumeProducing(self) -> None:  # noqa: N802
        """Continue, because the client has read the data."""
        self._is_paused = False
        self._on_progress()
        self._write_chunks()

    def stopProducing(self) -> None:  # noqa: N802
        """Discard the remaining data."""
        self._bodies.clear()

    def _write_chunks(self) -> None:
        while self._bodies and not self._is_paused:
            body, start = self._bodies[0], self._sent
            self._sent += CHUNK
            if self._sent >= len(body):
                self._bodies.popleft()
                self._sent = 0
            self._write(body[start : start + CHUNK])
            if not self._bodies:
                self._on_end()
