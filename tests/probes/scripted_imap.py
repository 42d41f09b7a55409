"""A small IMAP server over bytes, for the reading of report mailboxes."""

import re
from base64 import b64decode
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.internet.testing import StringTransportWithDisconnection
from twisted.python.failure import Failure
from zope.interface import implementer

from tests.house import result_of

VALIDITY = 77

CAPABILITIES = "IMAP4rev1 SASL-IR MOVE NAMESPACE AUTH=PLAIN AUTH=XOAUTH2"


@implementer(IStreamClientEndpoint)
class ScriptedImap:
    """An endpoint whose server answers at once.

    ``script`` has patterns of commands with the answers that replace the usual ones: untagged
    lines and, last, the tagged line without the tag; an empty text means silence, and ``None``
    that the connection ends.
    """

    def __init__(self, mails: dict[int, bytes], capabilities: str = CAPABILITIES) -> None:
        self.mails = mails
        self.capabilities = capabilities
        self.validity = VALIDITY
        self.uid_next = 0
        self.folders = {"INBOX"}
        self.prefix = ""
        self.moved: dict[int, str] = {}
        self.seen: set[int] = set()
        self.commands: list[str] = []
        self.script: dict[str, list[str | None]] = {}
        self.initial_responses: list[bytes] = []
        self.problem: Exception | None = None
        self._waits_for = ""
        self._transport = _Transport(self.received)

    def connect(self, factory: Any) -> Deferred[Any]:
        """Connect, and greet."""
        if self.problem is not None:
            return fail(self.problem)
        protocol = factory.buildProtocol(None)
        transport = _Transport(self.received)
        transport.protocol = protocol
        self._transport = transport
        protocol.makeConnection(transport)
        self._say("* OK ready")
        return succeed(protocol)

    def run(self, doing: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine while the server answers, and return its result."""
        done = Deferred.fromCoroutine(doing)
        while self._transport.lines or self._transport.disconnecting:
            if self._transport.disconnecting:
                self._transport.end()
            else:
                self.received(self._transport.lines.pop(0))
        return result_of(done)

    def end(self, why: str) -> None:
        """End the connection while no command is under way."""
        self._say(f"* BYE {why}")
        self._transport.end()

    def received(self, line: bytes) -> None:
        """Answer a line."""
        if self._waits_for:
            tag, self._waits_for = self._waits_for, ""
            self.initial_responses.append(line)
            self._play(tag, next(filter(None, self.script.values()), ["OK done"]))
            return
        tag, _, command = line.decode("latin-1").partition(" ")
        self.commands.append(command)
        for pattern, answers in self.script.items():
            if re.match(pattern, command, re.IGNORECASE) and answers:
                self._play(tag, answers)
                return
        verb = command.removeprefix("UID ").partition(" ")[0].upper()
        answer: Callable[[str], Iterable[str]] = getattr(self, f"do_{verb.lower()}")
        for said in answer(command):
            self._say(said)
        self._say(f"{tag} OK [READ-WRITE] done")

    def do_capability(self, _: str) -> Iterable[str]:
        """CAPABILITY."""
        yield f"* CAPABILITY {self.capabilities}"

    def do_namespace(self, _: str) -> Iterable[str]:
        """NAMESPACE."""
        yield f'* NAMESPACE (("{self.prefix}" ".")) NIL NIL'

    def do_login(self, _: str) -> Iterable[str]:
        """LOGIN."""
        return ()

    def do_authenticate(self, command: str) -> Iterable[str]:
        """AUTHENTICATE with an initial response."""
        self.initial_responses.append(command.split(" ")[2].encode())
        return ()

    def do_select(self, _: str) -> Iterable[str]:
        """SELECT."""
        yield f"* {len(self.mails)} EXISTS"
        yield f"* OK [UIDVALIDITY {self.validity}] valid"
        if self.uid_next:
            yield f"* OK [UIDNEXT {self.uid_next}] next"

    do_examine = do_select

    def do_search(self, command: str) -> Iterable[str]:
        """UID SEARCH."""
        first, _, last = command.split()[3].partition(":")
        if last == "*":
            found = [uid for uid in self.mails if uid >= int(first)] or list(self.mails)[-1:]
        else:
            found = [uid for uid in self.mails if int(first) <= uid <= int(last)]
        yield "* SEARCH " + " ".join(map(str, found))

    def do_fetch(self, command: str) -> Iterable[str]:
        """UID FETCH of sizes or contents."""
        for uid in map(int, command.split()[2].split(",")):
            mail = self.mails.get(uid)
            if mail is None:
                continue
            number = list(self.mails).index(uid) + 1
            if "RFC822.SIZE" in command:
                yield f"* {number} FETCH (UID {uid} RFC822.SIZE {len(mail)})"
            else:
                said = mail.decode("latin-1")
                yield f"* {number} FETCH (UID {uid} BODY[] {{{len(mail)}}}\r\n{said})"

    def do_store(self, command: str) -> Iterable[str]:
        """UID STORE."""
        self.seen |= set(map(int, command.split()[2].split(",")))
        return ()

    def do_move(self, command: str) -> Iterable[str]:
        """UID MOVE."""
        _, _, uids, folder = command.split(" ", 3)
        self.moved |= dict.fromkeys(map(int, uids.split(",")), folder)
        return ()

    def do_create(self, command: str) -> Iterable[str]:
        """CREATE."""
        self.folders.add(command.split(" ", 1)[1])
        return ()

    def do_logout(self, _: str) -> Iterable[str]:
        """LOGOUT."""
        yield "* BYE until next time"

    @property
    def sasl(self) -> list[bytes]:
        """The decoded lines that clients have sent to sign in."""
        return [b64decode(line) for line in self.initial_responses]

    def _play(self, tag: str, answers: list[str | None]) -> None:
        """Send the scripted answers up to the next line of the client."""
        while answers:
            said = answers.pop(0)
            if said is None:
                self._transport.lose()
            elif said.startswith("*"):
                self._say(said)
                continue
            elif said.startswith("+"):
                self._waits_for = tag
                self._say(said)
            elif said:
                self._say(f"{tag} {said}")
            return

    def _say(self, line: str) -> None:
        self._transport.protocol.dataReceived(line.encode("latin-1") + b"\r\n")


class _Transport(StringTransportWithDisconnection):
    """Passes lines to the server, one after the other, when the test asks for it."""

    def __init__(self, received: Callable[[bytes], None]) -> None:
        super().__init__()
        self._received = received
        self._begin = b""
        self.lines: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Keep the complete lines."""
        *lines, self._begin = (self._begin + data).split(b"\r\n")
        self.lines += lines

    def lose(self) -> None:
        """Let the connection end soon, as a reactor does."""
        self.disconnecting = self.connected

    def end(self) -> None:
        """End the connection."""
        self.disconnecting = self.connected = False
        self.lines.clear()
        self.protocol.connectionLost(Failure(ConnectionDone()))

    loseConnection = abortConnection = lose  # noqa: N815
