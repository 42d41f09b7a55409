"""A wire to a server on loopback that can be cut: as a firewall does it, without a word.

with running_cuttable_link(redis.port) as wire:
...  # connect to wire.port; wire.cut(), wire.mend()
"""

import contextlib
import socket
import threading
from collections.abc import Iterator

from tests.servers.daemon import HOST

CHUNK = 65_536


class CuttableLink:
    """Carries connections to a port. While it is cut they stand, and nothing passes."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listening = socket.create_server((HOST, 0))
        self.port: int = self._listening.getsockname()[1]
        self._passes = threading.Event()
        self._passes.set()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Let nothing pass."""
        self._passes.clear()

    def restore(self) -> None:
        """Let all pass again, also what was on its way."""
        self._passes.set()

    def close(self) -> None:
        """End everything."""
        for one in (self._listening, *self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._passes.set()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                self._open.append(near)
                try:
                    far = socket.create_connection((HOST, self._target))
                except OSError:
                    near.close()
                    continue
                self._open.append(far)
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK):
                self._passes.wait()
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def running_cuttable_link(port: int) -> Iterator[CuttableLink]:
    """Lay a wire for as long as the context lasts."""
    wire = CuttableLink(port)
    try:
        yield wire
    finally:
        wire.close()
