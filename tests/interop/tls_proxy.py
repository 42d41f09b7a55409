"""A proxy for clients that speak only HTTPS on port 443."""

import ssl
from pathlib import Path
from socket import create_connection, socket
from threading import Thread

from tests.servers.certificates import Authority
from tests.servers.daemon import HOST

HTTPS_HOST = "mail.test"


class TlsProxy:
    """An HTTP proxy whose CONNECT leads to one server, with TLS of its own for any host."""

    def __init__(self, target: int, folder: Path) -> None:
        authority = Authority()
        self.authority = authority.write_to(folder / "ca.pem")
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(*authority.issue(HTTPS_HOST).write_to(folder))
        self._target = target
        self._listener = socket()
        self._listener.bind((HOST, 0))
        self._listener.listen(100)
        self.url = f"http://{HOST}:{self._listener.getsockname()[1]}"
        Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += client.recv(1)
        assert head.startswith(f"CONNECT {HTTPS_HOST}:443 ".encode()), head
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        with (
            self._context.wrap_socket(client, server_side=True) as secured,
            create_connection((HOST, self._target)) as server,
        ):
            # A client sends its next request after the answer, so one direction ends both.
            back = Thread(target=_copy, args=(server, secured), daemon=True)
            back.start()
            _copy(secured, server)


def _copy(source: socket, target: socket) -> None:
    try:
        while data := source.recv(65_536):
            target.sendall(data)
    except OSError:
        return
