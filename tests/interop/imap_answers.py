"""Reads the answers of IMAP servers, and normalizes them for a comparison."""

import re
import socket
from typing import Any

LITERAL = re.compile(rb"\{(\d+)\}\r\n\Z")
TOKEN = re.compile(rb'"((?:[^"\\]|\\.)*)"|([()])|([^\s()"]+)')
SECTION = re.compile(rb"BODY\[[^\]]*\](?:<\d+>)?|BINARY(?:\.SIZE)?\[[^\]]*\](?:<\d+>)?")


class ImapClient:
    """A client that sends lines as they are, and returns the parsed responses."""

    def __init__(self, port: int, user: str, password: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._file = self._socket.makefile("rb")
        self._number = 0
        self._file.readline()
        answer = self.send(f'LOGIN {user} "{password}"'.encode())
        assert answer[1] == b"OK", answer

    def send(self, command: bytes, literal: bytes | None = None) -> tuple[list[Any], bytes, bytes]:
        """Send a command; return its untagged responses, its status and its text."""
        self._number += 1
        tag = b"t%d" % self._number
        self._socket.sendall(tag + b" " + command + b"\r\n")
        untagged: list[Any] = []
        while True:
            parts = self._response()
            line = parts[0] if isinstance(parts[0], bytes) else b""
            if line.startswith(b"+ ") and literal is not None:
                self._socket.sendall(literal + b"\r\n")
            elif line.startswith(tag + b" "):
                status, _, text = line[len(tag) + 1 :].partition(b" ")
                return untagged, status, text
            elif line.startswith(b"* BYE"):
                return untagged, b"BYE", line
            else:
                untagged.append(parts)

    def close(self) -> None:
        """Close the connection."""
        self._file.close()
        self._socket.close()

    def _response(self) -> list[bytes | tuple[bytes]]:
        """Return a response: its text and its literals, in order."""
        parts: list[bytes | tuple[bytes]] = []
        while True:
            line = self._file.readline()
            if not line:
                return [b"* BYE closed"]
            announced = LITERAL.search(line)
            if announced is None:
                parts.append(line.removesuffix(b"\r\n"))
                return parts
            parts.append(line[: announced.start()])
            parts.append((self._file.read(int(announced[1])),))


def parse(parts: list[bytes | tuple[bytes]]) -> list[Any]:
    """Parse a response: lists, strings as ``str``, atoms as upper-case bytes, ``NIL`` as `None`."""
    stack: list[list[Any]] = [[]]
    for part in parts:
        if isinstance(part, tuple):
            stack[-1].append(part[0].decode("latin-1"))
            continue
        position = 0
        while position < len(part):
            section = SECTION.match(part, position)
            if section is not None:
                stack[-1].append(section[0].upper())
                position = section.end()
                continue
            token = TOKEN.match(part, position)
            if token is None:
                position += 1
                continue
            position = token.end()
            if token[1] is not None:
                stack[-1].append(re.sub(rb"\\(.)", rb"\1", token[1]).decode("latin-1"))
            elif token[2] == b"(":
                stack.append([])
            elif token[2] == b")":
                closed = stack.pop()
                stack[-1].append(closed)
            else:
                atom = token[3].upper()
                stack[-1].append(None if atom == b"NIL" else atom)
    return stack[0]
