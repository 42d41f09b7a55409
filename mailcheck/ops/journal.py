"""A log line for each mail and each refusal, in a form that fail2ban reads, and their counts.

No line contains a body, a key, or more of a sender than the domain. Text that a client has chosen
is at the end of a line, so that it cannot look like text of mailcheck.
"""

from collections import Counter

from twisted.logger import Logger

from mailcheck.core.identifiers import AccountId, DeliveryId
from mailcheck.core.memory.instruments import Conditions, Tally
from mailcheck.core.messages import Session
from mailcheck.core.network_addresses import counting_key
from mailcheck.ports.journals import WebFault

LINES_PER_MINUTE = 10
"""Refusals of one client with a line each, in a minute; further ones are only counted."""

MAX_CLIENTS = 1_000
"""Maximum number of clients that are counted separately in a minute; later ones share a counter."""

OTHERS = "others"

ACCEPTED = (
    "mail accepted: client={client} port={port} delivery={delivery} "
    "recipients={recipients} size={size} tls={tls} reply=250 ms={ms} sender={sender}"
)
"""The line of a mail that is on disk."""


LOG = Logger()


class Pace:
    """Limits the lines that one client can cause, so that no client fills the disk with them."""

    def __init__(self, log: Logger = LOG) -> None:
        self._log = log
        self._counts: Counter[str] = Counter()

    def allows(self, client_ip: str) -> bool:
        """Count a refusal of a client, and return whether it is logged."""
        client = counting_key(client_ip)
        if client not in self._counts and len(self._counts) >= MAX_CLIENTS:
            client = OTHERS
        self._counts[client] += 1
        return self._counts[client] <= LINES_PER_MINUTE

    async def begin_minute(self) -> None:
        """Log the number of refusals without a line, and reset the counts; called once a minute."""
        counts, self._counts = self._counts, Counter()
        for client, count in counts.items():
            if count > LINES_PER_MINUTE:
                self._log.info(
                    "{count} more refusals within a minute: client={client}",
                    count=count - LINES_PER_MINUTE,
                    client=client,
                )


class MailJournal:
    """Implements the port `MailJournal` for one listening port."""

    def __init__(self, port: str, pace: Pace, log: Logger = LOG) -> None:
        self._log = log
        self._port = port
        self._pace = pace
        self.replies = Tally()
        self.accepted_size = 0

    def note_delivery(
        self,
        session: Session,
        envelope_sender: str,
        delivery_id: DeliveryId,
        recipients: int,
        size: int,
        seconds: float,
    ) -> None:
        """Log a mail that is on disk."""
        self.replies.add("DATA", "250", "2.0.0")
        self.accepted_size += size
        self._log.info(
            ACCEPTED,
            client=session.client_ip,
            port=self._port,
            delivery=delivery_id,
            recipients=recipients,
            size=size,
            tls=None if session.tls is None else session.tls.version,
            ms=round(seconds * 1_000, 1),
            sender=envelope_sender.rpartition("@")[2],
        )

    def note_refusal(self, client_ip: str, command: str, reply: bytes) -> None:
        """Log a reply of 4xx or 5xx, which may contain text of the client."""
        text = reply.decode("ascii", "replace").rstrip()
        code, _, rest = text.partition(" ")
        status = rest.partition(" ")[0]
        # An enhanced status code (RFC 3463), and not the first word of a text.
        is_enhanced = status[:1] in ("4", "5") and status[1:2] == "."
        self.replies.add(command, code, status if is_enhanced else "")
        if self._pace.allows(client_ip):
            self._log.info(
                "refused: client={client} port={port} command={command} reply={reply}",
                client=client_ip,
                port=self._port,
                command=command,
                reply=text,
            )


class ClientJournal:
    """Implements the ports `AccessJournal` and `WebJournal`."""

    def __init__(self, pace: Pace, log: Logger = LOG) -> None:
        self._log = log
        self._pace = pace
        self.failed_access = Tally()

    def note_failed_access(self, kind: str, client_ip: str, why: str) -> None:
        """Log a wrong key, or a failed sign-in or login."""
        self.failed_access.add(kind)
        if self._pace.allows(client_ip):
            self._log.warn(
                "failed {kind}: client={client} why={why}", kind=kind, client=client_ip, why=why
            )

    def note_fault(self, fault: WebFault) -> None:
        """Log a request that was answered with 5xx."""
        if self._pace.allows(fault.client_ip):
            self._log.warn(
                "HTTP {status}: client={client} reference={reference} method={method} "
                "path={path} why={why}",
                status=fault.status,
                client=fault.client_ip,
                reference=fault.reference or "-",
                method=fault.method,
                path=fault.path,
                why=fault.problem,
            )


class LoginJournal:
    """Implements the port `LoginJournal` for one port of mail programs."""

    def __init__(self, port: str, clients: ClientJournal, log: Logger = LOG) -> None:
        self._log = log
        self._port = port
        self._clients = clients
        self.logins = Tally()
        self.fetched = 0

    def note_login(self, client_ip: str, account_id: AccountId) -> None:
        """Count a login. Programs that poll log in often, so its line is for debugging."""
        self.logins.add("succeeded")
        self._log.debug(
            "logged in: client={client} port={port} account={account}",
            client=client_ip,
            port=self._port,
            account=account_id,
        )

    def note_failed_login(self, client_ip: str, why: str) -> None:
        """Log and count a rejected login."""
        self.logins.add("failed")
        self._clients.note_failed_access("login", client_ip, f"{self._port}: {why}")

    def note_fetched(self) -> None:
        """Count a message that a program fetches."""
        self.fetched += 1


def log_changes(conditions: Conditions) -> None:
    """Log each change of a condition: the store, the disk, resolvers and others."""

    def tell(subject: str, problem: str) -> None:
        if problem:
            LOG.warn("{subject}: {problem}", subject=subject, problem=problem)
        else:
            LOG.info("{subject}: well again", subject=subject)

    conditions.listen(tell)
