"""A reverse proxy that adds the API key, for a client that cannot send one."""

import contextlib
import socket
import threading
from collections.abc import Iterator

HOST = "127.0.0.1"
READ_SIZE = 65_536


@contextlib.contextmanager
def key_proxy(port: int, upstream: int, key: str) -> Iterator[None]:
    """Forward connections to a port of this machine, with the key in every request."""
    with socket.create_server((HOST, port)) as server:
        threading.Thread(target=_accept, args=(server, upstream, key), daemon=True).start()
        yield
        server.shutdown(socket.SHUT_RDWR)


def _accept(server: socket.socket, upstream: int, key: str) -> None:
    while True:
        try:
            client, _ = server.accept()
        except OSError:
            return
        behind = socket.create_connection((HOST, upstream))
        threading.Thread(target=_pass_answers, args=(behind, client), daemon=True).start()
        threading.Thread(target=_pass_requests, args=(client, behind, key), daemon=True).start()


def _pass_answers(behind: socket.socket, client: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := behind.recv(READ_SIZE):
            client.sendall(data)
        client.shutdown(socket.SHUT_RDWR)


def _pass_requests(client: socket.socket, behind: socket.socket, key: str) -> None:
    buffer = b""
    with contextlib.suppress(OSError), client, behind:
        while True:
            while b"\r\n\r\n" not in buffer:
                data = client.recv(READ_SIZE)
                if not data:
                    return
                buffer += data
            head, _, buffer = buffer.partition(b"\r\n\r\n")
            first, *fields = head.split(b"\r\n")
            behind.sendall(
                b"\r\n".join([first, f"Authorization: Bearer {key}".encode(), *fields, b"", b""])
            )
            left = _content_length(fields)
            while left:
                if not buffer:
                    buffer = client.recv(READ_SIZE)
                    if not buffer:
                        return
                behind.sendall(buffer[:left])
                buffer, left = buffer[left:], max(0, left - len(buffer))


def _content_length(fields: list[bytes]) -> int:
    for field in fields:
        name, _, value = field.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0
