"""Mail over a relay, on a real connection: byte for byte, with what it needs, and its answers."""

from random import Random
from typing import Any

from mailcheck.ports.probes import Relayed, RelayReply
from mailcheck.probes.smtp_relay import Relay, SmtpRelay
from mailcheck.probes.trust import TrustRoots
from tests.servers.mail_relay import MailRelay, running_relay
from tests.table import rows

SENDER, ANN, BOB = "release@here.example", "ann@there.example", "bob@there.example"
HEAD = b"Subject: Hello\r\n\r\n"


def relay_of(relay: MailRelay, seconds: float = 60.0) -> SmtpRelay:
    """Return the sender of mails over a relay."""
    from twisted.internet import reactor

    anything: Any = reactor
    to = Relay("127.0.0.1", relay.port, "never", "", "", "here.example", "of [release]")
    return SmtpRelay(anything, to, TrustRoots(()), seconds)


@rows(
    HEAD + b".\r\n..\r\n.a\r\n\r\n.\r\n",
    b".: a field\r\n" + HEAD,
    HEAD + b"a\r\n" * 30_000 + b".b\r\n",
    HEAD + b"no end of the last line",
    HEAD + b"\r\n\r\n",
    HEAD + "ümlaut\r\n.ümlaut\r\n".encode(),
    HEAD + bytes(one for one in range(1, 256) if one not in b"\r\n") + b"\r\n",
    b"Subject: " + "ümlaut".encode() + b"\r\n\r\nx\r\n",
)
async def test_a_mail_arrives_byte_for_byte(mail: bytes) -> None:
    """Dots, long mails, 8-bit characters and control characters are not changed."""
    with running_relay() as relay:
        relay.offers = (b"8BITMIME", b"SMTPUTF8", b"SIZE 1000000")
        sent = await relay_of(relay).send_mail(SENDER, (ANN, BOB), mail)
    (taken,) = relay.taken
    assert sent == Relayed(250, replies=(RelayReply(ANN, 250, "ok"), RelayReply(BOB, 250, "ok")))
    assert taken.raw == (mail if mail.endswith(b"\r\n") else mail + b"\r\n")
    assert (taken.sender, taken.recipients) == (SENDER, (ANN, BOB))


async def test_drawn_mails_arrive_byte_for_byte() -> None:
    """Mails of drawn lines with dots and line ends arrive as they are."""
    random = Random(58)
    with running_relay() as relay:
        relay.offers = (b"8BITMIME",)
        for _ in range(20):
            pieces = random.choices([b".", b"\r\n", b"a", b"\xfc", b"\r\n.\r\n", b" "], k=200)
            mail = HEAD + b"".join(pieces) + b"\r\n"
            assert not (await relay_of(relay).send_mail(SENDER, (ANN,), mail)).problem
            assert relay.taken[-1].raw == mail


@rows(
    (HEAD, (), ""),
    (HEAD, (b"8BITMIME", b"SMTPUTF8"), ""),
    (HEAD, (b"SIZE",), " SIZE=18"),
    (HEAD, (b"size 100",), " SIZE=18"),
    (HEAD + b"\xfc", (b"8BITMIME", b"SMTPUTF8"), " BODY=8BITMIME"),
    (b"X: \xc3\xbc\r\n\r\n", (b"8BITMIME", b"SMTPUTF8"), " BODY=8BITMIME SMTPUTF8"),
    (b"X: \xc3\xbc\r\n\r\n", (b"8BITMIME",), " BODY=8BITMIME"),
)
async def test_mail_says_what_it_needs(mail: bytes, offers: tuple[bytes, ...], said: str) -> None:
    """MAIL has the size, 8BITMIME and SMTPUTF8 if the relay offers them and the mail needs them."""
    with running_relay() as relay:
        relay.offers = offers
        assert not (await relay_of(relay).send_mail(SENDER, (ANN,), mail)).problem
    assert relay.taken[0].mail_command == f"FROM:<{SENDER}>{said}"


@rows(
    (HEAD + b"\xfc", (), "8-bit characters, and the relay does not offer 8BITMIME"),
    (HEAD + b"a" * 100, (b"8BITMIME", b"SIZE 100"), "118 octets, and the relay accepts 100"),
)
async def test_what_the_relay_cannot_carry(
    mail: bytes, offers: tuple[bytes, ...], problem: str
) -> None:
    """A mail that the relay cannot carry is rejected before it is sent."""
    with running_relay() as relay:
        relay.offers = offers
        sent = await relay_of(relay).send_mail(SENDER, (ANN,), mail)
    assert relay.taken == []
    assert sent.is_permanent
    assert problem in sent.problem


@rows(
    ({"RCPT": b"550 5.1.1 no such user"}, 550, True),
    ({"RCPT": b"450 4.2.0 greylisted"}, 450, False),
    ({"DATA": b"554 5.7.1 spam"}, 554, True),
    ({"DATA": b"451 4.3.0 later"}, 451, False),
    ({"MAIL": b"530 5.7.0 sign in"}, 530, False),
    ({f"RCPT TO:<{BOB}>": b"550 5.1.1 no bob"}, 250, False),
)
async def test_the_answers_of_the_relay(
    replies: dict[str, bytes], status: int, is_permanent: bool
) -> None:
    """Temporary and permanent rejections are told apart, and each recipient has its answer."""
    with running_relay() as relay:
        relay.replies = replies
        sent = await relay_of(relay).send_mail(SENDER, (ANN, BOB), HEAD)
    assert (sent.status, sent.is_permanent) == (status, is_permanent)
    (reply,) = replies.values()
    if status == 250:
        assert [one.is_accepted for one in sent.replies] == [True, False]
        assert sent.replies[1].text == "5.1.1 no bob"
    else:
        assert sent.problem == f"the relay answered {reply.decode()}"
        assert relay.taken == []
