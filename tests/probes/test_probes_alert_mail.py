"""Alerts by mail over a real connection: mail that the relay gets, and mail that it rejects."""

import time
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path
from typing import Any

import pytest

from mailcheck.cluster.local import LocalCluster
from mailcheck.core.accounts import AllowedRecipients
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.instants import instant_of
from mailcheck.core.webhooks import MAILTO, Attempt
from mailcheck.ports.probes import Post
from mailcheck.probes import alert_mail
from mailcheck.probes.alert_mail import (
    AlertMail,
    WebhookAndMailDialer,
    WebhookOrMailLine,
)
from mailcheck.probes.smtp_relay import Relay, SmtpRelay
from mailcheck.probes.trust import TrustRoots, find_trust_roots
from tests.probes.test_probes_webhooks_loopback import posts
from tests.servers.certificates import Authority, self_signed
from tests.servers.mail_relay import MailRelay, running_relay
from tests.table import rows

AUTHORITY = Authority()
OPS = "ops@example.com"
DOTS = ".a line with a dot\n..\n" * 2_000


def now() -> Any:
    """Return the current time."""
    return instant_of(time.time())


def sender(
    relay: MailRelay,
    tls: str = "never",
    login: tuple[str, str] = ("", ""),
    trust: TrustRoots | None = None,
) -> AlertMail:
    """Return the sender of alerts; "ann" may send to one address and one domain."""
    from twisted.internet import reactor

    anything: Any = reactor
    to = Relay("127.0.0.1", relay.port, tls, *login, "here.example", "of [alerts]")
    return AlertMail(
        SmtpRelay(anything, to, trust or TrustRoots(())),
        "alerts@here.example",
        AllowedRecipients({"ann": [OPS, "@Night.example"], "*": ["all@example.com"]}),
        LocalCluster(anything).counters,
        now,
    )


def trust_in(folder: Path) -> TrustRoots:
    """Return trust in the authority of the tests."""
    return find_trust_roots(AUTHORITY.write_to(folder / "ca.pem"))


def post(address: str = OPS) -> Post:
    """Return a mail to send."""
    mail = EmailMessage(SMTP)
    mail["Subject"] = "Hello"
    mail.set_content(DOTS)
    return Post(MAILTO + address, (), "msg_1", now(), mail.as_bytes())


async def test_it_is_encrypted_and_signed_in(tmp_path: Path) -> None:
    """If required, mail is sent only over a verified TLS connection, byte for byte."""
    with running_relay(tmp_path, AUTHORITY.issue("127.0.0.1")) as relay:
        mail = sender(relay, "required", ("bob", "secret"), trust_in(tmp_path))
        assert await mail.send("ann", post()) == Attempt(250)
        (taken,) = relay.taken
    assert (taken.sender, taken.recipient) == ("alerts@here.example", OPS)
    assert (taken.is_encrypted, taken.login) == (True, ("bob", "secret"))
    assert taken.mail.get_content().splitlines() == DOTS.splitlines()


async def test_who_can_not_prove_its_name_gets_nothing(tmp_path: Path) -> None:
    """An untrusted certificate or a missing STARTTLS ends the attempt without mail."""
    trust = trust_in(tmp_path)
    with running_relay(tmp_path, self_signed("127.0.0.1")) as relay:
        for tls in ("required", "offered"):
            tried = await sender(relay, tls, trust=trust).send("ann", post())
            assert "certificate" in tried.problem
            assert not tried.is_permanent
    with running_relay() as relay:
        tried = await sender(relay, "required", trust=trust).send("ann", post())
        assert tried == Attempt(problem="the relay offers no STARTTLS")
        assert await sender(relay, "offered", trust=trust).send("ann", post()) == Attempt(250)
        assert len(relay.taken) == 1


@rows(
    ("RCPT", b"550 no \x07such user", Attempt(550, "the relay answered 550 no such user")),
    ("RCPT", b"451 later", Attempt(451, "the relay answered 451 later")),
    ("DATA", b"554 no spam here", Attempt(554, "the relay answered 554 no spam here")),
    ("MAIL", b"530 sign in", Attempt(530, "the relay answered 530 sign in")),
    ("EHLO", b"421 shutting down", Attempt(problem="the relay does not support EHLO")),
)
async def test_what_is_refused(verb: str, reply: bytes, expected: Attempt) -> None:
    """A recipient or mail that is rejected permanently is not retried; other failures are."""
    with running_relay() as relay:
        relay.replies = {verb: reply}
        tried = await sender(relay).send("ann", post())
    assert (tried.status, tried.problem) == (expected.status, expected.problem)
    assert tried.is_permanent == (reply.startswith(b"55"))


async def test_who_does_not_answer() -> None:
    """A relay that does not answer is a temporary failure."""
    with running_relay() as relay:
        mail = sender(relay)
    tried = await mail.send("ann", post())
    assert tried == Attempt(problem="the relay does not answer, or closed the connection")


async def test_only_those_who_are_allowed() -> None:
    """Alerts go only to recipients that the operator allows for the account."""
    with running_relay() as relay:
        mail = sender(relay)
        dialer = WebhookAndMailDialer(posts(), mail)
        for address in (OPS, OPS.upper(), "a@night.example", "all@example.com"):
            dialer.require_mailable(address, "ann")
        dialer.require_mailable("all@example.com", "bob")
        for name, address in (("bob", OPS), ("ann", "b@example.com"), ("ann", "a@x.night.example")):
            with pytest.raises(InvalidParameter, match="does not allow"):
                dialer.require_mailable(address, name)
            tried = await mail.send(name, post(address))
            assert tried.is_permanent
        assert relay.taken == []


async def test_without_a_relay() -> None:
    """Without a relay, mail addresses are rejected, and pending alerts wait."""
    with pytest.raises(InvalidParameter, match="smtp_relay"):
        WebhookAndMailDialer(posts(), None).require_mailable(OPS, "ann")
    line = WebhookOrMailLine(posts().line("ann"), None, "ann")
    tried = await line.post(post())
    line.hang_up()
    assert "smtp_relay" in tried.problem
    assert not tried.is_permanent


async def test_one_address_gets_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address gets a limited number of alerts a day, from all accounts together."""
    monkeypatch.setattr(alert_mail, "MOST_A_DAY", 4)
    with running_relay() as relay:
        mail = sender(relay)
        for name in ("ann", "bob") * 2:
            assert await mail.send(name, post("all@example.com")) == Attempt(250)
        tried = await mail.send("ann", post("all@example.com"))
        assert tried.wait > 0
        assert len(relay.taken) == 4
