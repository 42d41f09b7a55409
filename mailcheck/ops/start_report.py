"""The first log lines of a daemon: listening addresses, permitted senders, missing accounts."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.core.errors import ExpectedFailure

Where = Callable[[], Sequence[str]]
"""Returns the listening addresses of one purpose once the daemon listens."""


class Doors(NamedTuple):
    """The addresses of the daemon, and the permitted senders."""

    mail: Where
    submission: Where
    imap: Where
    pop3: Where
    web: Where
    mailpit: Where
    mailpit_mail: Where
    milter: Where
    metrics: Where
    domains: Sequence[str]
    url: str
    auth_without_tls: str
    has_certificate: bool
    can_register: bool


class StartReport(Service):
    """Logs the report as soon as the reactor runs."""

    _log = Logger()

    def __init__(
        self,
        doors: Doors,
        version: str,
        has_account: Callable[[], Awaitable[bool]],
        when_running: Callable[[Callable[[], object]], object],
    ) -> None:
        self._doors = doors
        self._version = version
        self._has_account = has_account
        self._when_running = when_running

    def startService(self) -> None:
        """Wait for the reactor."""
        super().startService()
        self._when_running(lambda: Deferred.fromCoroutine(self._report()).addErrback(self._fail))

    async def _report(self) -> None:
        doors, log = self._doors, self._log
        log.info("mailcheck {version} has started", version=self._version)
        if where := ", ".join(doors.mail()):
            domains = ", ".join(doors.domains)
            log.info(
                "mail is received on {where} for inboxes at {domains}; {tls}",
                where=where,
                domains=domains,
                tls="with your certificate" if doors.has_certificate else "self-signed STARTTLS",
            )
        if where := ", ".join(doors.submission()):
            log.info(
                "programs submit mail on {where} with an API key as the password; all mail goes to "
                "the inbox of the key; without TLS: {clients}",
                where=where,
                clients={"private": "private networks only", "never": "nobody"}.get(
                    doors.auth_without_tls, "everybody"
                ),
            )
        for protocol, listens in (("IMAP", doors.imap), ("POP3", doors.pop3)):
            if where := ", ".join(listens()):
                log.info(
                    "mail programs read inboxes over {protocol} on {where}",
                    protocol=protocol,
                    where=where,
                )
        where = ", ".join(doors.web())
        log.info("HTTP is served on {where}: {url}/", where=where, url=doors.url)
        if where := ", ".join(doors.mailpit_mail()):
            log.info("mail to any recipient is received on {where}", where=where)
        for where in doors.mailpit():
            # Starters of Mailpit wait for these words.
            log.info("clients of Mailpit: accessible via http://{where}/", where=where)
        if where := ", ".join(doors.milter()):
            log.info("mail servers send copies of their mail to {where}", where=where)
        if where := ", ".join(doors.metrics()):
            log.info("metrics are served on {where}, at /metrics", where=where)
        if not await self._has_account():
            log.warn(
                "there is no account yet, and no inbox: run `mailcheck account add NAME` and "
                "`mailcheck key issue NAME`{more}",
                more=f"; or sign up at {doors.url}/sign-up" if doors.can_register else "",
            )

    def _fail(self, failure: Failure) -> None:
        failure.trap(ExpectedFailure)  # the store is unavailable, which is logged elsewhere
