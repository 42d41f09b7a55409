"""Parsing the arguments of commands."""

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.connections.lines import CommandError
from mailcheck.core.addresses import Mailbox
from mailcheck.smtp.commands import (
    MailCommand,
    parse_bdat,
    parse_helo,
    parse_mail,
    parse_rcpt,
)
from tests.linear import assert_linear
from tests.table import rows


def mail(argument: bytes) -> MailCommand:
    """Parse the argument of MAIL on the mail port."""
    return parse_mail(argument, has_auth=False)


def refusal(attempt: Callable[[], object]) -> bytes | None:
    """Return the reply that rejects an attempt, or `None`."""
    try:
        attempt()
    except CommandError as error:
        return error.reply
    return None


def refusal_of_mail(argument: bytes) -> str:
    """Return the code of the reply to an invalid MAIL."""
    with pytest.raises(CommandError) as caught:
        mail(argument)
    return caught.value.reply[:9].decode().strip()


def refusal_of_rcpt(argument: bytes, *, is_utf8: bool = False) -> str:
    """Return the code of the reply to an invalid RCPT."""
    with pytest.raises(CommandError) as caught:
        parse_rcpt(argument, is_utf8=is_utf8)
    return caught.value.reply[:9].decode().strip()


@rows(
    (b"FROM:<a@b.example>", MailCommand("a@b.example", 0, is_utf8=False)),
    (b"from:<a@b.example>", MailCommand("a@b.example", 0, is_utf8=False)),
    (b"FROM: <a@b.example>", MailCommand("a@b.example", 0, is_utf8=False)),
    (b"FROM:<>", MailCommand("", 0, is_utf8=False)),
    (b"FROM:<> SIZE=0", MailCommand("", 0, is_utf8=False)),
    (b"FROM:<a@b.example> SIZE=12 BODY=8BITMIME", MailCommand("a@b.example", 12, False)),
    (b"FROM:<a@b.example>  body=7bit  size=12", MailCommand("a@b.example", 12, False)),
    (b"FROM:<@relay.example:a@b.example>", MailCommand("a@b.example", 0, is_utf8=False)),
    (b'FROM:<"a> b"@b.example> SIZE=3', MailCommand('"a> b"@b.example', 3, is_utf8=False)),
    (b"FROM:<a@[192.0.2.1]>", MailCommand("a@[192.0.2.1]", 0, is_utf8=False)),
    (b"FROM:<a@[IPv6:2001:db8::1]>", MailCommand("a@[IPv6:2001:db8::1]", 0, is_utf8=False)),
    ("FROM:<é@b.example> SMTPUTF8".encode(), MailCommand("é@b.example", 0, is_utf8=True)),
    (b"FROM:<root>", MailCommand("root", 0, is_utf8=False)),
    (b"FROM:<a..b.@c_d.example>", MailCommand("a..b.@c_d.example", 0, is_utf8=False)),
    (
        b"FROM:<" + b"a" * 300 + b"@b.example>",
        MailCommand("a" * 300 + "@b.example", 0, is_utf8=False),
    ),
)
def test_mail_is_read(argument: bytes, expected: MailCommand) -> None:
    """The sender and the parameters are parsed in all forms of RFC 5321 and its extensions."""
    assert mail(argument) == expected


@rows(
    (b"", "501 5.5.4"),
    (b"FROM:", "501 5.5.4"),
    (b"FROM:a@b.example", "501 5.5.4"),
    (b"TO:<a@b.example>", "501 5.5.4"),
    (b"FROM:<a@b.example", "501 5.5.4"),
    (b"FROM:<a@b.example>SIZE=1", "501 5.5.4"),
    (b"FROM:<a@b.example> SIZE=x", "501 5.5.4"),
    (b"FROM:<a@b.example> SIZE", "501 5.5.4"),
    (b"FROM:<a@b.example> SIZE=-1", "501 5.5.4"),
    (b"FROM:<a@b.example> SIZE=123456789012345678901", "501 5.5.4"),
    (b"FROM:<a@b.example> SIZE=1 SIZE=1", "501 5.5.4"),
    (b"FROM:<a@b.example> SMTPUTF8=1", "501 5.5.4"),
    (b"FROM:<a@b.example> BODY=9BIT", "501 5.5.4"),
    (b"FROM:<a@b.example> BODY", "501 5.5.4"),
    (b"FROM:<a@b.example> BODY=BINARYMIME", "504 5.5.4"),
    (b"FROM:<a@b.example> RET=FULL", "555 5.5.4"),
    (b"FROM:<a@b.example> AUTH=<>", "555 5.5.4"),
    (b"FROM:<a@b.example> =1", "501 5.5.4"),
    (b"FROM:<a@b.example> \xff=1", "501 5.5.4"),
    (b"FROM:<a@>", "501 5.1.7"),
    (b"FROM:<@b.example>", "501 5.1.7"),
    (b"FROM:<a b@b.example>", "501 5.1.7"),
    (b"FROM:<a@-b.example>", "501 5.1.7"),
    (b"FROM:<a@[300.1.1.1]>", "501 5.1.7"),
    (b"FROM:<a@" + b"b." * 127 + b"example>", "501 5.1.7"),
    (b"FROM:<" + b"a" * 800 + b"@b.example>", "501 5.1.7"),
    (b"FROM:<a b>", "501 5.1.7"),
    (b"FROM:<a\x01b@b.example>", "501 5.1.7"),
    (b"FROM:<a\x7fb>", "501 5.1.7"),
    ("FROM:<é@b.example>".encode(), "553 5.6.7"),
    (b"FROM:<\xff@b.example> SMTPUTF8", "501 5.5.2"),
)
def test_invalid_mail_is_rejected(argument: bytes, code: str) -> None:
    """Each error has the code of RFC 5321 4.2.2, 6531 3.5 or 3463."""
    assert refusal_of_mail(argument) == code


def test_the_auth_parameter_goes_with_auth() -> None:
    """The AUTH parameter is accepted where AUTH is offered (RFC 4954 5)."""
    command = parse_mail(b"FROM:<a@b.example> AUTH=<>", has_auth=True)
    assert command.envelope_sender == "a@b.example"


@rows(
    (b"TO:<dev-a+Tag@inbox.example>", Mailbox("dev-a+Tag", "inbox.example")),
    (b"to: <a@b.example>", Mailbox("a", "b.example")),
    (b"TO:<postmaster>", Mailbox("postmaster", "")),
    (b"TO:<PostMaster>", Mailbox("PostMaster", "")),
    (b"TO:<postmaster@b.example>", Mailbox("postmaster", "b.example")),
    (b'TO:<"a\\"b"@b.example>', Mailbox('a"b', "b.example")),
    (b"TO:<@x.example,@y.example:a@b.example>", Mailbox("a", "b.example")),
    (b"TO:<root>", Mailbox("root", "")),
    (b"TO:<try..this..0511@docomo.ne.jp>", Mailbox("try..this..0511", "docomo.ne.jp")),
    (b"TO:<" + b"x" * 70 + b"@b.example>", Mailbox("x" * 70, "b.example")),
)
def test_rcpt_is_read(argument: bytes, expected: Mailbox) -> None:
    """Recipients are parsed in all forms, including postmaster without a domain."""
    assert parse_rcpt(argument, is_utf8=False) == expected


@rows(
    (b"", "501 5.5.4"),
    (b"TO:a@b.example", "501 5.5.4"),
    (b"FROM:<a@b.example>", "501 5.5.4"),
    (b"TO:<>", "501 5.1.3"),
    (b"TO:<a@b..example>", "501 5.1.3"),
    (b"TO:<a@b.example> NOTIFY=NEVER", "555 5.5.4"),
    (b"TO:<\xc3\xa9@b.example>", "553 5.6.7"),
)
def test_invalid_rcpt_is_rejected(argument: bytes, code: str) -> None:
    """Each error of a recipient has its code."""
    assert refusal_of_rcpt(argument) == code


def test_rcpt_with_smtputf8() -> None:
    """After SMTPUTF8 a recipient may be in any script."""
    argument = "TO:<почта@пример.example>".encode()
    assert parse_rcpt(argument, is_utf8=True) == Mailbox("почта", "пример.example")
    assert refusal_of_rcpt(b"TO:<\xff@b.example>", is_utf8=True) == "501 5.5.2"


@rows(
    "client.example",
    "localhost",
    "my_host",
    "WIN-PC01",
    "john's-mac.local",
    "10.0.0.5",
    "client.example.",
    "[192.0.2.1]",
    "[IPv6:2001:db8::1]",
    "::1",
    "[2001:7c0:2041:8::19]",
    "[fe80::1%eth0]",
    "fe80::1%25en0",
    "[300.1.1.1]",
    "[127.0.0.1",
    "Дмитрий-ПК",
    "büro-pc",
    "电脑.local",
    "John's MacBook Pro (2)",
    "DESKTOP\\user",
    "*.example.com",
    "user@host",
    "a;b,c=d!e",
    "𝕡𝕔",
)
def test_names_of_real_machines_are_accepted(name: str) -> None:
    """Names that programs really use are accepted and kept, valid or not."""
    assert parse_helo(name.encode()) == name


@rows(
    (b"b\xfcro-pc", "büro-pc"),
    ("Дмитрий-ПК".encode("cp1251"), "Äìèòðèé-ÏÊ"),
    (b"\x8d\x81-pc", "\ufffd\ufffd-pc"),
    ("a\u0085b\u2028c\u202ed".encode(), "a\ufffdb\ufffdc\ufffdd"),
)
def test_names_in_8_bit_charsets_are_accepted(octets: bytes, name: str) -> None:
    """A name that is not UTF-8 is decoded as Latin-1; invisible characters are replaced."""
    assert parse_helo(octets) == name


@rows(
    b"",
    b"<script>",
    b"a>b",
    b"a\tb",
    b"a\x1b[2J",
    b"a\x7f",
    b"a\0",
    b"a\rb",
    b"a\nb",
    b"a" * 256,
)
def test_invalid_names_are_rejected(name: bytes) -> None:
    """An empty or overlong name, control characters and angle brackets are rejected."""
    with pytest.raises(CommandError) as caught:
        parse_helo(name)
    assert caught.value.reply.startswith(b"501 ")


@rows((b"0", (0, False)), (b"12 LAST", (12, True)), (b"0 last", (0, True)), (b"7  LAST", (7, True)))
def test_bdat_is_read(argument: bytes, expected: tuple[int, bool]) -> None:
    """The size of a chunk is parsed, and whether it is the last one."""
    assert parse_bdat(argument) == expected


@rows(b"", b"LAST", b"-1", b"1 FIRST", b"1LAST", b"1 LAST x", b"9" * 21, b"\xb2")
def test_invalid_bdat_is_rejected(argument: bytes) -> None:
    """A chunk without a clear size is rejected."""
    with pytest.raises(CommandError) as caught:
        parse_bdat(argument)
    assert caught.value.reply.startswith(b"501 5.5.4 ")


@given(st.binary(max_size=300))
def test_names_are_printable(argument: bytes) -> None:
    """An accepted name has only printable characters, so it cannot end a line or field."""
    try:
        name = parse_helo(argument)
    except CommandError:
        return
    assert name.isprintable()


@given(st.binary(max_size=300))
def test_any_argument_is_parsed_or_rejected(argument: bytes) -> None:
    """No argument makes a parser fail otherwise, and each rejection is one line of ASCII."""
    for attempt in (
        lambda: parse_helo(argument),
        lambda: mail(b"FROM:<" + argument),
        lambda: mail(b"FROM:<a@b.example> " + argument),
        lambda: parse_rcpt(b"TO:<" + argument + b">", is_utf8=True),
        lambda: parse_bdat(argument),
    ):
        reply = refusal(attempt)
        assert reply is None or (reply.endswith(b"\r\n") and reply.count(b"\n") == 1)
        assert reply is None or reply.isascii()


@rows(b'"', b"<", b'"\\', b'""', b" ", b"a=", b"@a,")
def test_a_hostile_line_takes_linear_time(part: bytes) -> None:
    """The patterns read each octet once."""

    def read(argument: bytes) -> None:
        reply = refusal(partial(mail, argument))
        assert reply is None or reply.startswith(b"501 ")

    for before in (b"FROM:<", b"FROM:<a@b.example>"):
        assert_linear(read, part, before)
