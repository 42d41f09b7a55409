"""A connection to a server on loopback that can be cut silently, as by a firewall.

with running_cuttable_link(redis.port) as link:
...  # connect to link.port; link.cut(), link.restore()
"""

import contextlib
import socket
import threading
from collections.abc import Iterator

from tests.servers.daemon import HOST

CHUNK = 65_536


class CuttableLink:
    """Forwards connections to a port. While it is cut they stay open without transferring data."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listening = socket.create_server((HOST, 0))
        self.port: int = self._listening.getsockname()[1]
        self._passes = threading.Event()
        self._passes.set()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Stop forwarding."""
        self._passes.clear()

    def restore(self) -> None:
        """Forward again, including delayed data."""
        self._passes.set()

    def close(self) -> None:
        """Close everything."""
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
    """Run a link as long as the context lasts."""
    wire = CuttableLink(port)
    try:
        yield wire
    finally:
        wire.close()
