"""Answers on their way out: piece by piece as they are read, and only so much of them held."""

from collections import Counter, deque
from collections.abc import Callable

from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer

from mailcheck.core.client_limits import largest_holder

PIECE = 32_768
"""Bytes handed to a connection at a time, which stops us at 64 KiB that nobody has read; what
is no longer than this goes out whole."""

HELD_BYTES = 536_870_912
"""Of all answers on their way out: as much as of mail on its way in, twenty of the largest."""

HELD_BYTES_OF_CLIENT = 134_217_728
"""Of those to one client: five of the largest, and three more like him are served."""


class _Held:
    """Bodies and how many hold each: all who wait for a mail are sent the same bytes."""

    def __init__(self) -> None:
        self._holders: Counter[int] = Counter()
        self.size = 0

    def size_with(self, body: bytes) -> int:
        return self.size if id(body) in self._holders else self.size + len(body)

    def add(self, body: bytes) -> None:
        self.size = self.size_with(body)
        self._holders[id(body)] += 1

    def remove(self, body: bytes) -> None:
        self._holders[id(body)] -= 1
        if not self._holders[id(body)]:
            del self._holders[id(body)]
            self.size -= len(body)


class _HeldOfClient(_Held):
    """Those of one client, and how to end each, the oldest first."""

    def __init__(self) -> None:
        super().__init__()
        self.endings: dict[object, Callable[[], None]] = {}


class AnswerRoom:
    """Memory for answers that their clients have not read yet.

    One answer always has room beside nothing else, however large it is.
    """

    def __init__(self, in_all: int = HELD_BYTES, of_client: int = HELD_BYTES_OF_CLIENT) -> None:
        self._in_all = in_all
        self._of_client = of_client
        self._held = _Held()
        self._clients: dict[str, _HeldOfClient] = {}

    @property
    def held(self) -> int:
        """Say how many bytes are held."""
        return self._held.size

    def make_room_for(self, body: bytes, client: str) -> bool:
        """Tell whether one more answer to a client can be held.

        When all room is taken, whoever holds most of it loses his oldest
        answers, as long as he holds more than this client would: a few who
        read slowly keep nobody else from what is small.
        """
        of_client = self._clients.get(client, _Held())
        size = of_client.size_with(body)
        if of_client.size and size > self._of_client:
            return False
        while self._held.size and self._held.size_with(body) > self._in_all:
            largest = largest_holder(self._clients.values())
            if largest.size <= size:
                return False
            next(iter(largest.endings.values()))()
        return True

    def hold(self, body: bytes, client: str, hang_up: Callable[[], object]) -> Callable[[], None]:
        """Count an answer from now on; gives what is called when it is held no longer.

        ``hang_up`` ends it where it has to make room.
        """
        of_client = self._clients.setdefault(client, _HeldOfClient())
        ticket = object()
        for held in (self._held, of_client):
            held.add(body)

        def let_go() -> None:
            if of_client.endings.pop(ticket, None) is None:
                return  # it has made room
            for held in (self._held, of_client):
                held.remove(body)
            if not of_client.size:
                self._clients.pop(client, None)

        def end() -> None:
            let_go()
            hang_up()

        of_client.endings[ticket] = end
        return let_go


@implementer(IPushProducer)
class PacedBody:
    """Writes what it is given piece by piece, while the connection takes it.

    :param is_paused: the connection is full already.
    :param on_progress: is called whenever the client has read what it was sent.
    :param on_end: is called when everything has been written.
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
        """Write this too, behind what there is."""
        self._bodies.append(body)

    def start(self) -> None:
        """Begin to write."""
        self._go_on()

    def pauseProducing(self) -> None:  # noqa: N802
        """Wait: the connection is full."""
        self._is_paused = True

    def resumeProducing(self) -> None:  # noqa: N802
        """Go on: the connection is empty."""
        self._is_paused = False
        self._on_progress()
        self._go_on()

    def stopProducing(self) -> None:  # noqa: N802
        """Forget the rest."""
        self._bodies.clear()

    def _go_on(self) -> None:
        while self._bodies and not self._is_paused:
            body, start = self._bodies[0], self._sent
            self._sent += PIECE
            if self._sent >= len(body):
                self._bodies.popleft()
                self._sent = 0
            self._write(body[start : start + PIECE])
            if not self._bodies:
                self._on_end()
