"""Reading a mailbox of an IMAP server, with Twisted's client.

The operator has configured the server, so it may be in a private network. Mails are fetched by
UID and without a change of their flags (RFC 9051 6.4.5, BODY.PEEK). The client encodes the answer
of AUTHENTICATE in lines of 76 characters, which is not Base64 of one line as RFC 9051 9 requires,
so that command is sent from here.
"""

import json
import re
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from io import BytesIO
from typing import Any, NamedTuple

from OpenSSL import SSL
from service_identity import VerificationError
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.endpoints import HostnameEndpoint, wrapClientTLS
from twisted.internet.error import ConnectError, ConnectionClosed, DNSLookupError
from twisted.internet.interfaces import (
    IOpenSSLClientConnectionCreator,
    IReactorTime,
    IStreamClientEndpoint,
)
from twisted.internet.protocol import Factory, connectionDone
from twisted.mail.imap4 import (
    Command,
    IllegalServerResponse,
    IMAP4Client,
    IMAP4Exception,
)
from twisted.python.failure import Failure

from mailcheck.core.domains.report_mailboxes import (
    BATCH_OCTETS,
    LARGEST_MAIL,
    OLDEST,
    ReportMailbox,
    Then,
    Tls,
)
from mailcheck.core.instants import SECOND
from mailcheck.ports.clocks import Now
from mailcheck.ports.report_mailboxes import (
    Batch,
    FetchedMail,
    MailboxFailed,
    Place,
    Remedy,
)
from mailcheck.probes.trust import FindTrust, NoAuthorities

SECONDS = 60.0
"""Seconds for one command. A server may scan a large folder for it."""

LOGOUT_SECONDS = 5.0

LISTED_AT_ONCE = 10_000
"""Number of UIDs in the first range that is listed."""

SIZES_AT_ONCE = 200
"""Number of mails whose sizes are asked for in one command."""

MAX_LINE = 8 * 1024 * 1024
"""Maximum octets of a line, and of all lines of an answer: the UIDs of a million mails are on one
line. To parse so much takes seconds, in which the daemon does nothing else."""

MOST_OCTETS = 2 * LARGEST_MAIL + MAX_LINE
"""Maximum octets that a server sends for one command: a batch of mails and a long line."""

CLOSED = "the server closed the connection"
FLOODED = "the server sent more than was asked for"

LONGEST_ANSWER = 300
"""Maximum number of characters of a server's answer that are shown."""


class _Meaning(NamedTuple):
    pattern: str
    remedy: Remedy
    advice: str


MEANINGS = (
    _Meaning(
        r"Suggested Backoff Time: (?P<wait>\d{1,9}) milliseconds",
        Remedy.RETRY,
        "The server limits the load.",
    ),
    _Meaning(r"AccessTokenExpired", Remedy.RENEW, "The access token has ended."),
    _Meaning(
        r"User is authenticated but not connected",
        Remedy.RETRY_ONCE,
        "The token is of another account than user, this account has no rights in the mailbox, or "
        "the mailbox has too many connections.",
    ),
    _Meaning(
        r"^AUTHENTICATE failed",
        Remedy.OPERATOR,
        "Check the scope of the token, the permission IMAP.AccessAsApp, the object id in "
        "New-ServicePrincipal (that of the Enterprise application), the rights in the mailbox, and "
        "that IMAP is on for it (Set-CASMailbox -ImapEnabled $true).",
    ),
)
"""Answers of Microsoft 365 with their meanings. The first match counts."""

_READ = "utf-8", "replace"


class ImapClient(IMAP4Client):
    """Twisted's client, which also keeps the last words of the server and bounds what it reads.

    ``greeted`` fires when the server has greeted.
    """

    MAX_LENGTH = MAX_LINE

    def __init__(self, context: Any = None) -> None:
        super().__init__(context)
        self.greeted: Deferred[None] = Deferred()
        self.farewell = ""
        self.is_lost = False
        self._octets = 0
        self._line_octets = 0

    def serverGreeting(self, _: object) -> None:  # noqa: N802
        """Handle the greeting."""
        self.greeted.callback(None)

    def sendCommand(self, cmd: Command) -> Deferred[Any]:  # noqa: N802
        """Send a command, whose answer is counted from its beginning."""
        self._octets = self._line_octets = 0
        sent: Deferred[Any] = super().sendCommand(cmd)
        return sent

    def dataReceived(self, data: bytes) -> None:
        """Count octets: lines and literals are kept until the end of an answer."""
        self._octets += len(data)
        if self._octets <= MOST_OCTETS:
            super().dataReceived(data)
        else:
            self._stop_flood()

    def lineReceived(self, line: bytes) -> None:
        """Keep the text of BYE, which says why the server ends the connection."""
        self._line_octets += len(line)
        if self._line_octets > MAX_LINE:
            self._stop_flood()
            return
        if line[:5].upper() == b"* BYE":
            self.farewell = line[5:].strip().decode(*_READ)
        super().lineReceived(line)

    def messageFile(self, octets: int) -> BytesIO:  # noqa: N802
        """Return the buffer of a literal.

        :raises IllegalServerResponse: it is larger than any that was asked for.
        """
        if octets > 2 * LARGEST_MAIL:
            raise IllegalServerResponse("a literal is too large")
        return BytesIO()

    def _stop_flood(self) -> None:
        self.farewell = FLOODED
        self.hang_up()

    def hang_up(self) -> None:
        """Close the connection at once."""
        transport: Any = self.transport
        transport.abortConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Fail everything that waits."""
        self.is_lost = True
        super().connectionLost(reason)
        if not self.greeted.called:
            self.greeted.errback(reason)


class Way(NamedTuple):
    """How a server is reached: what connects, and the options of TLS for STARTTLS."""

    endpoint: IStreamClientEndpoint
    context: IOpenSSLClientConnectionCreator | None = None


def way_to(mailbox: ReportMailbox, reactor: Any, find_trust: FindTrust) -> Way:
    """Return the way to the server of a mailbox, which must prove its name with TLS.

    :raises MailboxFailed: there are no certificate authorities to verify it.
    """
    endpoint = HostnameEndpoint(reactor, mailbox.host, mailbox.port, SECONDS)
    if mailbox.tls is Tls.NONE:
        return Way(endpoint)
    try:
        verified = find_trust().verify_as(mailbox.host)
    except NoAuthorities as failure:
        raise MailboxFailed(f"{failure}.", Remedy.OPERATOR) from None
    if mailbox.tls is Tls.STARTTLS:
        return Way(endpoint, verified)
    return Way(wrapClientTLS(verified, endpoint))


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class ImapMailbox(NamedTuple):
    """Implements `mailcheck.ports.report_mailboxes.MailboxOpener` for a folder of a server.

    :param find_way: returns the way to the server. It is called for each connection.
    """

    mailbox: ReportMailbox
    find_way: Callable[[], Way]
    clock: IReactorTime
    now: Now

    async def open(self, token: str, place: Place) -> "OpenFolder":
        """Connect, log in, and open the folder, as defined by `MailboxOpener`."""
        client = await self._connect()
        folder = OpenFolder(self.mailbox, client, self.clock)
        try:
            await folder.log_in(token)
            await folder.open(place, self._oldest())
        except BaseException:
            client.hang_up()
            raise
        return folder

    async def _connect(self) -> ImapClient:
        endpoint, context = self.find_way()
        factory = Factory.forProtocol(lambda: ImapClient(context))
        factory.noisy = False
        connecting: Deferred[Any] = endpoint.connect(factory)
        try:
            return await connecting.addTimeout(SECONDS, self.clock)
        except Exception as failure:
            raise MailboxFailed(_why_not_connected(failure, self.mailbox)) from failure

    def _oldest(self) -> str:
        """Return the day since which mails are read, as SEARCH expects it (RFC 9051 6.4.4)."""
        day = datetime.fromtimestamp((self.now() - OLDEST) / SECOND, UTC)
        return f"{day.day}-{_MONTHS[day.month - 1]}-{day.year}"


class OpenFolder:
    """An open folder of a server."""

    def __init__(self, mailbox: ReportMailbox, client: ImapClient, clock: IReactorTime) -> None:
        self._mailbox = mailbox
        self._client = client
        self._clock = clock
        self._capabilities: Mapping[bytes, Any] = {}
        self._uid_validity = 0
        self._waiting: deque[int] = deque()
        self._sizes: dict[int, int] = {}
        self._move_to = b""
        self._listed = 0
        self._last: int | None = 0
        self._oldest = ""

    async def log_in(self, token: str) -> None:
        """Encrypt the connection, and log in.

        :raises MailboxFailed: that is not possible.
        """
        client, mailbox = self._client, self._mailbox
        await self._do("The server did not greet", lambda: client.greeted)
        await self._learn()
        if mailbox.tls is Tls.STARTTLS:
            if b"STARTTLS" not in self._capabilities:
                raise MailboxFailed("The server offers no STARTTLS.", Remedy.OPERATOR)
            await self._do("STARTTLS failed", lambda: client.startTLS(client.context))
            await self._learn()
        refused = f"The server rejected the sign-in of {mailbox.user}"
        if token:
            await self._show_token(refused, token)
        elif b"LOGINDISABLED" in self._capabilities:
            raise MailboxFailed("The server accepts no passwords; use OAuth.", Remedy.OPERATOR)
        else:
            login = partial(client.login, mailbox.user.encode(), mailbox.password.encode())
            await self._do(refused, login, Remedy.OPERATOR)
        await self._learn()

    async def open(self, place: Place, oldest: str) -> None:
        """Open the folder, and list the mails after a place.

        :param oldest: the first day of which mails are listed.
        :raises MailboxFailed: that is not possible.
        """
        client, mailbox = self._client, self._mailbox
        prefix = await self._find_prefix()
        enter = client.examine if mailbox.then is Then.LEAVE else client.select
        refused = f"The folder {mailbox.folder!r} cannot be opened"
        try:
            opened = await self._do(refused, partial(enter, mailbox.folder), Remedy.OPERATOR)
        except MailboxFailed as failure:
            if failure.remedy is not Remedy.OPERATOR or not prefix:
                raise
            full = prefix + mailbox.folder
            opened = await self._do(refused, partial(enter, full), Remedy.OPERATOR)
        if mailbox.then is not Then.LEAVE and not opened["READ-WRITE"]:
            problem = "The folder is read-only. Set then = leave, or get the right to change it."
            raise MailboxFailed(problem, Remedy.OPERATOR)
        if mailbox.then is Then.MOVE:
            self._prepare_move(prefix)
        self._uid_validity = opened.get("UIDVALIDITY", 0)
        last = place.last_uid if place.uid_validity == self._uid_validity else 0
        self._listed, self._oldest = last, oldest
        self._last = opened["UIDNEXT"] - 1 if "UIDNEXT" in opened else None
        await self._list()

    async def next_batch(self, limit: int) -> Batch | None:
        """Fetch the next mails, as defined by `OpenMailbox`."""
        if not self._waiting:
            await self._list()
        if not self._waiting:
            return None
        chosen: list[int] = []
        octets = 0
        while self._waiting and len(chosen) < limit:
            size = await self._size_of(self._waiting[0])
            read = 0 if size > LARGEST_MAIL else size
            if chosen and octets + read > BATCH_OCTETS:
                break
            octets += read
            chosen.append(self._waiting.popleft())
        wanted = [uid for uid in chosen if 0 <= self._sizes[uid] <= LARGEST_MAIL]
        bodies = await self._fetch(wanted) if wanted else {}
        mails = [
            FetchedMail(str(uid), bodies.get(uid))
            for uid in chosen
            if uid in bodies or self._sizes[uid] > LARGEST_MAIL
        ]
        for uid in chosen:
            del self._sizes[uid]
        return Batch(mails, Place(self._uid_validity, chosen[-1]))

    async def finish(self, keys: Sequence[str]) -> None:
        """Mark or move mails, as defined by `OpenMailbox`."""
        if not keys or self._mailbox.then is Then.LEAVE:
            return
        uids, client = ",".join(keys), self._client
        mark = partial(client.addFlags, uids, ["\\Seen"], uid=1)
        await self._do("The mails cannot be marked", mark)
        if self._mailbox.then is not Then.MOVE:
            return
        try:
            await self._move(uids)
        except MailboxFailed as failure:
            if "TRYCREATE" not in str(failure):
                raise
            create = partial(client.sendCommand, Command(b"CREATE", self._move_to))
            await self._do("The folder of move_to cannot be created", create, Remedy.OPERATOR)
            await self._move(uids)

    async def close(self) -> None:
        """Log out, as defined by `OpenMailbox`."""
        if self._client.is_lost:
            return
        leaving: Deferred[object] = self._client.logout()
        leaving.addTimeout(LOGOUT_SECONDS, self._clock).addErrback(lambda _: None)
        await leaving
        self._client.hang_up()

    async def _list(self) -> None:
        """List the next mails, in ranges that are larger where there are none.

        A long list of UIDs takes time to read, in which the daemon does nothing else.
        """
        width = LISTED_AT_ONCE
        while not self._waiting and (self._last is None or self._listed < self._last):
            first = self._listed + 1
            end = None if self._last is None else min(self._last, self._listed + width)
            uids = f"UID {first}:{end or '*'}"
            search = partial(self._client.search, uids, f"SINCE {self._oldest}", uid=True)
            found = await self._do("The mails cannot be listed", search)
            # The last mail is in the range to * even if its UID is lower (RFC 9051 9, seq-range).
            self._waiting.extend(sorted({uid for uid in found if uid >= first}))
            if end is None:
                self._last = self._listed
                return
            self._listed, width = end, 4 * width

    def _move(self, uids: str) -> Awaitable[Any]:
        command = Command(b"UID MOVE", uids.encode() + b" " + self._move_to)
        move = partial(self._client.sendCommand, command)
        return self._do("The mails cannot be moved", move)

    async def _learn(self) -> None:
        """Ask for the capabilities, which STARTTLS and a log-in change."""
        asking = partial(self._client.getCapabilities, useCache=0)
        self._capabilities = await self._do("The capabilities of the server are unknown", asking)

    async def _find_prefix(self) -> str:
        """Return the prefix of personal folders, such as ``INBOX.`` (RFC 9051 6.3.10)."""
        if b"NAMESPACE" not in self._capabilities:
            return ""
        personal, *_ = await self._do("The namespaces are unknown", self._client.namespace)
        prefix: str = personal[0][0] if personal else ""
        return prefix

    def _prepare_move(self, prefix: str) -> None:
        if b"MOVE" not in self._capabilities:
            problem = "The server cannot move mails (RFC 6851). Set then = mark."
            raise MailboxFailed(problem, Remedy.OPERATOR)
        name = self._mailbox.move_to
        # Twisted registers this codec for the names of folders (RFC 3501 5.1.3).
        full = (name if name.startswith(prefix) else prefix + name).encode("imap4-utf-7")
        self._move_to = b'"' + full.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'

    async def _show_token(self, refused: str, token: str) -> None:
        """Log in with an access token: XOAUTH2, or OAUTHBEARER (RFC 7628) without it."""
        offered = {bytes(name).upper() for name in self._capabilities.get(b"AUTH") or ()}
        user, bearer = self._mailbox.user, f"auth=Bearer {token}\x01\x01"
        if b"XOAUTH2" in offered:
            scheme, text, end = b"XOAUTH2", f"user={user}\x01{bearer}", b""
        elif b"OAUTHBEARER" in offered:
            place = f"host={self._mailbox.host}\x01port={self._mailbox.port}\x01"
            scheme, text, end = b"OAUTHBEARER", f"n,a={user},\x01{place}{bearer}", b"AQ=="
        else:
            raise MailboxFailed("The server offers no sign-in with OAuth.", Remedy.OPERATOR)
        answers = [b64encode(text.encode())]
        is_at_once = b"SASL-IR" in self._capabilities
        first = b" " + answers.pop() if is_at_once else b""
        challenge = bytearray()

        def go_on(line: bytes) -> None:
            challenge[:] = line
            self._client.sendLine(answers.pop() if answers else end)

        command = Command(b"AUTHENTICATE", scheme + first, continuation=go_on)
        try:
            await self._do(refused, partial(self._client.sendCommand, command), Remedy.OPERATOR)
        except MailboxFailed as failure:
            status = _status_in(bytes(challenge))
            more = f" (status {status})" if status else ""
            raise MailboxFailed(f"{failure}{more}", failure.remedy, failure.wait) from None

    async def _size_of(self, uid: int) -> int:
        """Return the size of a mail; -1 if it has been deleted meanwhile."""
        if uid not in self._sizes:
            uids = [self._waiting[i] for i in range(min(SIZES_AT_ONCE, len(self._waiting)))]
            fetch = partial(self._client.fetchSize, ",".join(map(str, uids)), uid=1)
            found = await self._do("The sizes of the mails are unknown", fetch)
            self._sizes |= dict.fromkeys(uids, -1) | {
                int(values["UID"]): int(values["RFC822.SIZE"])
                for values in found.values()
                if "UID" in values and "RFC822.SIZE" in values
            }
        return self._sizes[uid]

    async def _fetch(self, uids: Iterable[int]) -> dict[int, bytes]:
        listed = ",".join(map(str, uids))
        fetch = partial(self._client.fetchSpecific, listed, uid=1, peek=True)
        found = await self._do("The mails cannot be fetched", fetch)
        return dict(filter(None, (_read_mail(parts) for (parts,) in found.values())))

    async def _do(
        self, what: str, ask: Callable[[], Deferred[Any]], if_refused: Remedy = Remedy.RETRY
    ) -> Any:
        """Send a command, and wait for its answer.

        :raises MailboxFailed: it failed. An answer in `MEANINGS` has its own remedy.
        """
        if self._client.is_lost:  # a server may close the connection while reports are stored
            raise _explain(what, self._client.farewell or CLOSED, Remedy.RETRY)
        try:
            return await ask().addTimeout(SECONDS, self._clock)
        except DeferredTimeout:
            self._client.hang_up()
            raise MailboxFailed(f"{what}: no answer within {SECONDS:.0f} seconds.") from None
        except IMAP4Exception as failure:
            raise _explain(what, _text_of(failure), if_refused) from None
        except (ConnectionClosed, SSL.Error, VerificationError) as failure:
            said = self._client.farewell or _why_closed(failure, self._mailbox)
            raise _explain(what, said, Remedy.RETRY) from None


def _read_mail(parts: Sequence[Any]) -> tuple[int, bytes] | None:
    """Return UID and content of a mail from the parts of FETCH: names and values in turn."""
    uid, content = None, None
    for index, part in enumerate(parts):
        if part == "UID" and uid is None:
            uid = int(parts[index + 1])
        elif part == "BODY" and content is None:
            # The name, the empty section, and the content, each octet as a character.
            content = (parts[index + 2] or "").encode("latin-1")
    return None if uid is None or content is None else (uid, content)


def _text_of(failure: IMAP4Exception) -> str:
    (said,) = failure.args or (b"",)
    return said.decode(*_READ) if isinstance(said, bytes) else str(said)


def _explain(what: str, said: str, remedy: Remedy) -> MailboxFailed:
    shown = " ".join("".join(c if c.isprintable() else " " for c in said).split())
    shown = shown[:LONGEST_ANSWER]
    for meaning in MEANINGS:
        found = re.search(meaning.pattern, said, re.IGNORECASE)
        if found is not None:
            wait = int(found.groupdict().get("wait") or 0)
            text = f"{what}: {shown.rstrip('.')}. {meaning.advice}"
            return MailboxFailed(text, meaning.remedy, wait)
    return MailboxFailed(f"{what}: {shown.rstrip('.')}.", remedy)


def _status_in(challenge: bytes) -> str:
    """Return the status in the JSON with which a server explains a failed sign-in."""
    try:
        said = json.loads(b64decode(challenge))
    except ValueError:
        return ""
    status = said.get("status") if isinstance(said, dict) else None
    return str(status)[:40] if status is not None else ""


def _why_not_connected(failure: Exception, mailbox: ReportMailbox) -> str:
    place = f"{mailbox.host}:{mailbox.port}"
    if isinstance(failure, DNSLookupError):
        return f"The host {mailbox.host} has no address."
    if isinstance(failure, DeferredTimeout):
        return f"{place} does not answer."
    if isinstance(failure, ConnectError):
        return f"{place} does not accept connections."
    return f"No connection to {place}: {_why_closed(failure, mailbox)}."


def _why_closed(failure: Exception, mailbox: ReportMailbox) -> str:
    if isinstance(failure, VerificationError):
        return f"its certificate is not for {mailbox.host}"
    if isinstance(failure, SSL.Error):
        is_of_certificate = "certificate" in str(failure)
        unknown = "its certificate is not from a known authority"
        return unknown if is_of_certificate else "TLS could not be negotiated"
    return CLOSED
