"""Whether any resolver answers at all: found out once, and known to all who ask."""

from collections import deque
from collections.abc import Callable, Sequence

from mailcheck.checks.dns_answers import DnsQuestion
from mailcheck.dns.alarms import Alarm, Alarms
from mailcheck.dns.exchange import Exchange, Pending
from mailcheck.dns.servers import Server
from mailcheck.dns.wire_format import pack_question

ROOT = pack_question(DnsQuestion("", "NS"))
"""What every resolver knows, whatever became of the name servers of others."""

SENDINGS = 3
INTERVAL = 0.4
"""Times that the question is sent, and seconds between them, until who says nothing is dead."""

WHILE_DEAD = 1.0
"""Seconds between two questions to the dead."""


class Liveness:
    """Learns that nobody answers, and when somebody does again.

    A lookup without an answer proves little: the name servers of that name may be dead. So
    the servers are asked what each knows at once. When none of them says anything to anybody for
    as long as that takes, they are dead until one does.

    :param on_death: is called when they have died.
    """

    def __init__(
        self,
        alarms: Alarms,
        exchange: Exchange,
        servers: Sequence[Server],
        on_death: Callable[[], None],
    ) -> None:
        self._alarms = alarms
        self._exchange = exchange
        self._servers = tuple(servers)
        self._on_death = on_death
        self._alarm: Alarm | None = None
        self._asked: deque[Pending] = deque()
        self._sent = 0
        self.is_dead = False

    def note_silence(self) -> None:
        """Note that a question had no answer: find out whether any would have."""
        if self._alarm is None:
            self._ask()

    def note_answer(self) -> None:
        """Note that a server said something, whatever it was."""
        if self._alarm is not None:
            self.stop()

    def heard(self, message: bytes) -> None:
        """Take the answer to our own question."""
        self.stop()

    def unreachable(self) -> None:
        """Learn that there is no way to one of them now; go on asking."""

    def stop(self) -> None:
        """Ask no more; who was dead is not."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        while self._asked:
            self._asked.pop().cancel()
        self._sent = 0
        self.is_dead = False

    def _ask(self) -> None:
        if self._sent >= SENDINGS and not self.is_dead:
            self.is_dead = True
            self._on_death()
        while len(self._asked) > (SENDINGS - 1) * len(self._servers):
            self._asked.popleft().cancel()
        self._sent += 1
        self._alarm = self._alarms.set(WHILE_DEAD if self.is_dead else INTERVAL, self._ask)
        for server in self._servers:
            try:
                self._asked.append(self._exchange.ask(server, ROOT, True, self))
            except OSError:
                continue  # no way to it now
