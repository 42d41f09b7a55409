"""``mailcheck mcp``: MCP over standard input and output, for agents that cannot use HTTP.

Each line of the input is one JSON-RPC message, which is posted to the daemon in its own thread. The
responses and notifications of the daemon are lines of the output.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from socket import SHUT_RDWR, socket
from threading import Lock, Thread
from typing import Any
from urllib.parse import SplitResult, urlencode, urlsplit, urlunsplit

from mailcheck.cli.access.daemon_access import set_daemon_command
from mailcheck.cli.commands import Console
from mailcheck.cli.exit_statuses import EXIT_FINE
from mailcheck.cli.terminal import is_safe_terminal
from mailcheck.clients.mailcheck_client import SILENCE, Mailcheck
from mailcheck.core.errors import cause_of
from mailcheck.web.mcp.json_rpc import (
    INTERNAL_ERROR,
    Message,
    Notification,
    Request,
    RequestId,
    RpcError,
    UnreadableMessage,
    is_request_id,
    parse_message,
    render_error,
)
from mailcheck.web.mcp.protocol_modes import VERSION_KEY, write_routing_headers

ENDPOINT = "/mcp"
CANCELLED = "notifications/cancelled"
SESSION, VERSION = "Mcp-Session-Id", "MCP-Protocol-Version"
JSON, EVENTS = "application/json", "text/event-stream"
FIRST_ERROR = 400
"""The first HTTP status of an error."""

LAST_RESPONSES = 1.0
"""Seconds in which responses are still written after the end of the input."""


def add_mcp(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck mcp``."""
    parser.description = (
        "Runs an MCP server on standard input and output, and passes each message to the daemon."
        " An agent starts this command. Agents that support HTTP connect to /mcp of the daemon."
    )
    set_daemon_command(parser, run_bridge)
    parser.add_argument(
        "--tools",
        metavar="LIST",
        default="",
        help="offer only these tools: presets (inbox, domains, tests, watches) or names of tools,"
        " separated by commas",
    )
    parser.set_defaults(has_progress=False)


def run_bridge(daemon: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck mcp``: pass messages until the input ends."""
    if sys.stdin.isatty():
        console.print_note("mailcheck: an agent starts this command; Ctrl-C ends it")
    bridge = Bridge(daemon, console, options.tools)
    try:
        for line in sys.stdin.buffer:
            bridge.receive(line)
        bridge.wait(LAST_RESPONSES)
    finally:
        bridge.close()
    return EXIT_FINE


class Call:
    """A message on its way to the daemon. Other threads may cancel it."""

    def __init__(self) -> None:
        self.is_cancelled = False
        self._socket: socket | None = None

    def post(self, url: SplitResult, body: bytes, headers: dict[str, str]) -> HTTPResponse:
        """Send the message, and return the response when its headers have arrived.

        :raises OSError: the daemon cannot be reached, or the call was cancelled.
        """
        kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
        connection = kind(url.netloc, timeout=SILENCE)
        connection.connect()
        self._socket = connection.sock
        if self.is_cancelled:
            raise ConnectionAbortedError
        connection.request("POST", urlunsplit(("", "", *url[2:])), body, headers)
        return connection.getresponse()

    def cancel(self) -> None:
        """Disconnect, which cancels the call in the daemon too."""
        self.is_cancelled = True
        if self._socket is not None:
            with suppress(OSError):  # the response is complete
                self._socket.shutdown(SHUT_RDWR)


class Bridge:
    """Passes messages between an agent and the daemon."""

    def __init__(self, daemon: Mailcheck, console: Console, tools: str = "") -> None:
        self._daemon = daemon
        self._query = urlencode({"tools": tools}) if tools else ""
        self._console = console
        self._session: dict[str, str] = {}
        self._calls: dict[RequestId, Call] = {}
        self._threads: list[Thread] = []
        self._output = Lock()
        self._is_closed = False

    def receive(self, line: bytes) -> None:
        """Process a line of the agent."""
        if not line.strip():
            return
        try:
            message = parse_message(line)
        except UnreadableMessage as error:
            self._console.print_note(f"mailcheck: {error}")
            self._write(render_error(error.request_id, error))
            return
        if isinstance(message, Notification) and message.method == CANCELLED:
            # Disconnecting cancels a call in all revisions, so the daemon needs no message.
            self._cancel(message.params.get("requestId"))
            return
        call = Call()
        if isinstance(message, Request):
            self._calls[message.id] = call
        thread = Thread(target=self._pass, args=(call, message, line), daemon=True)
        self._threads = [*(running for running in self._threads if running.is_alive()), thread]
        thread.start()

    def wait(self, seconds: float) -> None:
        """Wait until all calls have ended, for at most ``seconds``."""
        end = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))

    def close(self) -> None:
        """Write no more lines, because the process ends."""
        with self._output:
            self._is_closed = True

    def _cancel(self, request_id: object) -> None:
        call = self._calls.get(request_id) if is_request_id(request_id) else None
        if call is not None:
            call.cancel()

    def _pass(self, call: Call, message: Message, body: bytes) -> None:
        """Post a message, and write the responses of the daemon or an error."""
        try:
            self._exchange(call, message, body)
        except RpcError as error:
            if not call.is_cancelled:
                self._report(error, message.id if isinstance(message, Request) else None)
        finally:
            if isinstance(message, Request) and self._calls.get(message.id) is call:
                del self._calls[message.id]

    def _exchange(self, call: Call, message: Message, body: bytes) -> None:
        """Post a message, and write the responses.

        :raises RpcError: the daemon rejected the message, did not answer or cannot be reached.
        """
        url = urlsplit(self._daemon.url + ENDPOINT)._replace(query=self._query)
        is_answered = not isinstance(message, Request)
        try:
            with closing(call.post(url, body, self._headers_of(message))) as response:
                for data in _read_messages(response):
                    found = self._parse(data, response.status)
                    is_answered = is_answered or "method" not in found
                    self._keep_session(message, response, found)
                    self._write(data)
        except (OSError, HTTPException, ValueError) as error:  # ValueError: closed by `cancel`
            problem = (
                f"{self._daemon.url} cannot be reached: {cause_of(error) or type(error).__name__}"
            )
            raise RpcError(INTERNAL_ERROR, problem) from error
        if not is_answered:
            raise RpcError(INTERNAL_ERROR, f"{self._daemon.url} ended the connection early")

    def _headers_of(self, message: Message) -> dict[str, str]:
        headers = self._session
        if isinstance(message, Request) and VERSION_KEY in message.meta:
            headers = write_routing_headers(message)
        own = {"Content-Type": JSON, "Accept": f"{JSON}, {EVENTS}", "Connection": "close"}
        return {**self._daemon.authorization, **own, **headers}

    def _parse(self, data: bytes, status: int) -> dict[str, Any]:
        """Parse a message of the daemon.

        :raises RpcError: it is an error of HTTP, whose response may lack the id of the request.
        """
        try:
            found = json.loads(data)
        except ValueError:
            found = None
        if isinstance(found, dict) and status < FIRST_ERROR:
            return found
        error = found.get("error") if isinstance(found, dict) else None
        if isinstance(error, dict):  # of the endpoint
            raise RpcError(error.get("code", status), str(error.get("message")), error.get("data"))
        if isinstance(error, str):  # of the HTTP server
            raise RpcError(status, error)
        shown = f"HTTP status {status}, {data[:60]!r}"
        raise RpcError(status, f"{self._daemon.url} does not respond like mailcheck: {shown}")

    def _keep_session(
        self, message: Message, response: HTTPResponse, found: dict[str, Any]
    ) -> None:
        """Store the session and the version that ``initialize`` has agreed on."""
        if isinstance(message, Request) and message.method == "initialize" and "result" in found:
            self._session = {VERSION: str(found["result"]["protocolVersion"])}
            if session := response.headers.get(SESSION):
                self._session[SESSION] = session

    def _report(self, error: RpcError, request_id: RequestId | None) -> None:
        """Answer a request with an error, and print it."""
        self._console.print_note(f"mailcheck: {error}")
        if request_id is not None:
            self._write(render_error(request_id, error))

    def _write(self, message: bytes) -> None:
        """Write a message as one line, unless the agent reads no more."""
        line = message.replace(b"\r", b"").replace(b"\n", b" ")
        with self._output:
            if self._is_closed:
                return
            try:
                if is_safe_terminal(self._console.output):
                    self._console.print_text(line.decode("utf-8", "replace"))
                else:
                    self._console.write_bytes(line + b"\n")
            except BrokenPipeError:
                self._is_closed = True


def _read_messages(response: HTTPResponse) -> Iterator[bytes]:
    """Yield the messages of a response: one JSON text, or the data of an event stream."""
    if response.headers.get_content_type() != EVENTS:
        if body := response.read():
            yield body
        return
    data: list[bytes] = []
    for line in response:
        field, _, value = line.rstrip(b"\r\n").partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
        elif not line.strip() and data:
            yield b"\n".join(data)
            data = []
