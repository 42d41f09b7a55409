"""The first lines of the log: facts for a newcomer, and missing parts."""

from collections.abc import Callable, Sequence
from typing import Any

from twisted.internet.defer import Deferred, fail, succeed
from twisted.logger import LogEvent, LogLevel, capturedLogs, formatEvent

from mailcheck.core.errors import StoreUnavailable
from mailcheck.ops.start_report import Doors, StartReport
from tests.table import rows

DOORS = Doors(
    mail=lambda: ["0.0.0.0:25"],
    submission=lambda: ["0.0.0.0:587", "[::]:587"],
    imap=list,
    pop3=lambda: ["0.0.0.0:110", "0.0.0.0:995"],
    web=lambda: ["127.0.0.1:8080"],
    mailpit=lambda: ["127.0.0.1:8025"],
    milter=list,
    mailpit_mail=lambda: ["127.0.0.1:1025"],
    metrics=list,
    domains=["mail.example", "second.example"],
    url="https://mail.example",
    auth_without_tls="private",
    has_certificate=True,
    can_register=False,
)


def reported(doors: Doors, has_account: Callable[[], Any]) -> Sequence[LogEvent]:
    """Return the lines that are logged when the reactor starts."""
    begin: list[Callable[[], object]] = []

    async def ask() -> bool:
        found: Deferred[bool] = has_account()
        return await found

    report = StartReport(doors, "1.2", ask, begin.append)
    report.startService()
    with capturedLogs() as events:
        begin[0]()
    return events


def lines(events: Sequence[LogEvent]) -> str:
    """Return the text of a log."""
    return "\n".join(map(formatEvent, events))


def test_what_listens_and_who_may_send() -> None:
    """Each port has a line; services that are turned off have none."""
    text = lines(reported(DOORS, lambda: succeed(True)))
    assert "mailcheck 1.2 has started" in text
    assert "mail is received on 0.0.0.0:25" in text
    assert "mail to any recipient is received on 127.0.0.1:1025" in text
    assert "accessible via http://127.0.0.1:8025/" in text
    assert "mail.example, second.example; with your certificate" in text
    assert "on 0.0.0.0:587, [::]:587" in text
    assert "without TLS: private networks only" in text
    assert "over POP3 on 0.0.0.0:110, 0.0.0.0:995" in text
    assert "IMAP" not in text
    assert "HTTP is served on 127.0.0.1:8080: https://mail.example/" in text
    assert "metrics" not in text
    assert "no account" not in text


@rows(("private", "private networks only"), ("never", "nobody"), ("always", "everybody"))
def test_who_may_send_without_tls(option: str, words: str) -> None:
    """The line follows the option; a daemon with its own certificate says so."""
    doors = DOORS._replace(auth_without_tls=option, has_certificate=False)
    text = lines(reported(doors, lambda: succeed(True)))
    assert f"without TLS: {words}" in text
    assert "self-signed STARTTLS" in text


def test_there_is_no_account() -> None:
    """The log names the commands that add an account, and the page for signing up."""
    (warning,) = [
        event
        for event in reported(DOORS._replace(can_register=True), lambda: succeed(False))
        if event["log_level"] is LogLevel.warn
    ]
    assert "mailcheck account add NAME" in formatEvent(warning)
    assert "https://mail.example/sign-up" in formatEvent(warning)


def test_a_store_that_is_away() -> None:
    """If the store is unavailable, the report does not mention accounts."""
    doors = DOORS._replace(mail=list, submission=list, metrics=lambda: ["127.0.0.1:9000"])
    text = lines(reported(doors, lambda: fail(StoreUnavailable("the disk is gone"))))
    assert "metrics are served on 127.0.0.1:9000, at /metrics" in text
    assert "mail comes in" not in text
    assert "account" not in text
