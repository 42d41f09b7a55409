"""AUTH on the submission port."""

import re
from base64 import b64encode
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.logger import LogEvent, capturedLogs

from mailcheck.connections.policies import AuthWithoutTls
from mailcheck.connections.sasl import ResponseReader
from mailcheck.core.errors import StoreUnavailable
from mailcheck.core.identifiers import AccountId
from tests.fakes.mail_receiver import FakeMailReceiver
from tests.smtp.talk import MAIL, PUBLIC_IP, House, Talk
from tests.table import rows

NEAR = "10.0.0.7"
KEY = "mck_secret"


def encode(text: str) -> bytes:
    """Encode a response of the client."""
    return b64encode(text.encode())


PLAIN = b"AUTH PLAIN " + encode(f"\0user\0{KEY}") + b"\r\n"


def submission(**settings: Any) -> House:
    """Open a submission port with one known key."""
    receiver = FakeMailReceiver(keys={KEY: AccountId("account-1")})
    return House(receiver, is_submission=True, **settings)


@rows(
    [b"AUTH PLAIN " + encode(f"\0user\0{KEY}")],
    [b"auth plain " + encode(f"authz\0\0{KEY}")],
    [b"AUTH PLAIN", encode(f"\0user\0{KEY}")],
    [b"AUTH PLAIN =", None, b"AUTH PLAIN " + encode(f"\0u\0{KEY}")],
    [b"AUTH LOGIN", encode("user"), encode(KEY)],
    [b"AUTH LOGIN", b"", encode(KEY)],
    [b"AUTH LOGIN " + encode("user"), encode(KEY)],
)
def test_a_key_opens_the_account(exchange: list[bytes | None]) -> None:
    """PLAIN and LOGIN accept a key with or without an initial response, for any user name."""
    house = submission()
    talk = house.greeted(NEAR)
    said = b""
    for line in exchange:
        if line is not None:
            said = talk.say(line + b"\r\n")
    assert said == b"235 2.7.0 Authenticated\r\n"
    talk.say(MAIL, b"RCPT TO:<anyone@elsewhere.example>\r\n", b"DATA\r\n", b"hi\r\n.\r\n")
    (mail,) = house.receiver.delivered
    assert mail.session.account_id == "account-1"
    assert mail.envelope.recipients[0].address == "anyone@elsewhere.example"


def test_login_asks_in_the_words_that_clients_know() -> None:
    """The challenges are "Username:" and "Password:"; that of PLAIN is empty."""
    talk = submission().greeted(NEAR)
    assert talk.say(b"AUTH LOGIN\r\n") == b"334 VXNlcm5hbWU6\r\n"
    assert talk.say(encode("user") + b"\r\n") == b"334 UGFzc3dvcmQ6\r\n"
    assert talk.say(b"*\r\n").startswith(b"501 5.7.0 ")
    assert talk.say(b"AUTH PLAIN\r\n") == b"334 \r\n"


@rows(
    ([b"AUTH PLAIN " + encode("\0user\0wrong")], b"535 5.7.8 "),
    ([b"AUTH PLAIN " + encode("\0user\0")], b"535 5.7.8 "),
    ([b"AUTH PLAIN ="], b"501 5.5.2 "),
    ([b"AUTH PLAIN " + encode("user")], b"501 5.5.2 "),
    ([b"AUTH PLAIN " + encode("a\0b\0c\0d")], b"501 5.5.2 "),
    ([b"AUTH PLAIN not-base-64"], b"501 5.5.2 "),
    ([b"AUTH PLAIN AHVzZXIAa2V5 AHVzZXIAa2V5"], b"501 5.5.2 "),
    ([b"AUTH PLAIN", b"*"], b"501 5.7.0 "),
    ([b"AUTH PLAIN", b""], b"501 5.5.2 "),
    ([b"AUTH LOGIN", b"\xff"], b"501 5.5.2 "),
    ([b"AUTH LOGIN", b"x" * 12_289], b"500 5.5.6 "),
    ([b"AUTH"], b"501 5.5.4 "),
    ([b"AUTH "], b"501 5.5.4 "),
    ([b"AUTH CRAM-MD5"], b"504 5.5.4 "),
    ([b"AUTH \xff"], b"504 5.5.4 "),
)
def test_errors_of_an_exchange(lines: list[bytes], reply: bytes) -> None:
    """Each error gets the code of RFC 4954 and no access, and the connection stays open."""
    talk = submission().greeted(NEAR)
    said = b""
    for line in lines:
        said = talk.say(line + b"\r\n")
    assert said.startswith(reply)
    assert talk.say(MAIL).startswith(b"530 5.7.0 ")
    assert talk.codes(PLAIN, MAIL) == ["235", "250"]


def test_a_long_response_is_accepted() -> None:
    """A line of 12288 octets is accepted (RFC 4954 4), so the user name may be that long."""
    house = submission()
    talk = house.greeted(NEAR)
    response = b64encode(b"\0" + b"u" * (9000 - len(KEY)) + b"\0" + KEY.encode())
    assert talk.codes(b"AUTH PLAIN\r\n", response + b"\r\n") == ["334", "235"]


def test_the_order_of_commands() -> None:
    """AUTH is allowed after EHLO, before MAIL, and once."""
    talk = submission().connect(NEAR)
    talk.heard()
    assert talk.codes(PLAIN) == ["503"]
    talk.say(b"EHLO x\r\n")
    assert talk.codes(PLAIN, PLAIN) == ["235", "503"]
    assert talk.codes(b"EHLO x\r\n", MAIL) == ["250", "250"]
    assert talk.codes(PLAIN) == ["503"]


def test_mail_requires_a_key() -> None:
    """Without AUTH a mail is rejected on this port."""
    assert submission().greeted(NEAR).say(MAIL).startswith(b"530 5.7.0 ")


def test_three_failures_close_the_connection() -> None:
    """The third wrong key gets a reply, and the connection is closed."""
    talk = submission().greeted(NEAR)
    wrong = b"AUTH PLAIN " + encode("\0user\0wrong") + b"\r\n"
    assert talk.codes(wrong, wrong) == ["535", "535"]
    assert talk.codes(wrong) == ["535", "421"]
    assert talk.is_closed


@rows(
    (AuthWithoutTls.PRIVATE, "127.0.0.1", True),
    (AuthWithoutTls.PRIVATE, "192.168.3.4", True),
    (AuthWithoutTls.PRIVATE, "fd00::1", True),
    (AuthWithoutTls.PRIVATE, PUBLIC_IP, False),
    (AuthWithoutTls.NEVER, "127.0.0.1", False),
    (AuthWithoutTls.ALWAYS, PUBLIC_IP, True),
)
def test_a_key_travels_in_clear_only_where_allowed(
    policy: AuthWithoutTls, client_ip: str, *, is_allowed: bool
) -> None:
    """Without TLS, AUTH is only offered where it is allowed; otherwise 538 and no key check."""
    house = submission(auth_without_tls=policy)
    talk = house.connect(client_ip)
    assert (b"AUTH PLAIN LOGIN" in talk.say(b"EHLO x\r\n")) is is_allowed
    assert talk.say(PLAIN).startswith(b"235 " if is_allowed else b"538 5.7.11 ")
    assert house.receiver.secrets == ([KEY] if is_allowed else [])


def test_an_unavailable_store_is_temporary() -> None:
    """An unavailable store is a 454, which does not count as a failed attempt."""
    house = submission()
    house.receiver.failures["authenticate"] = StoreUnavailable("Locked")
    talk = house.greeted(NEAR)
    assert talk.codes(PLAIN, PLAIN, PLAIN) == ["454"] * 3
    assert not talk.is_closed


def test_an_unexpected_failure_is_temporary(logged_failures: list[LogEvent]) -> None:
    """An unexpected exception is a 454, and is logged without the key."""
    house = submission()
    house.receiver.failures["authenticate"] = ZeroDivisionError()
    assert house.greeted(NEAR).say(PLAIN).startswith(b"454 4.7.0 ")
    assert KEY not in repr(logged_failures)


def test_no_key_is_ever_logged() -> None:
    """Neither valid nor invalid keys are logged in any form."""
    wrong = b"AUTH PLAIN " + encode("\0user\0wrong-key") + b"\r\n"
    with capturedLogs() as events:
        submission().greeted(NEAR).say(wrong, PLAIN)
    assert "wrong-key" not in repr(events)
    assert KEY not in repr(events)


def test_the_mail_port_has_no_auth() -> None:
    """The mail port, which accepts mail of any client, does not offer AUTH."""
    talk = House().connect(NEAR)
    assert b"AUTH" not in talk.say(b"EHLO x\r\n")
    assert talk.say(PLAIN).startswith(b"502 5.5.1 ")


@given(st.binary(max_size=30), st.lists(st.integers(1, 7), min_size=1))
def test_a_response_does_not_depend_on_the_cut(line: bytes, steps: list[int]) -> None:
    """The line and the position after it do not depend on the packets."""
    line = line.replace(b"\r\n", b"")
    line = line.removesuffix(b"\r")
    data = line + b"\r\nNOOP\r\n"
    reader = ResponseReader()
    position = number = 0
    while True:
        piece = data[position : position + steps[number % len(steps)]]
        end = reader.feed(b"__" + piece, 2)
        if end is not None:
            break
        position += len(piece)
        number += 1
    assert reader.line == line
    assert data[position + end - 2 :] == b"NOOP\r\n"


def at_data_of_a_key(house: House) -> Talk:
    """Authenticate and send all commands up to DATA."""
    talk = house.greeted(NEAR)
    talk.say(b"AUTH PLAIN " + encode(f"\0user\0{KEY}") + b"\r\n")
    talk.say(MAIL, b"RCPT TO:<anyone@elsewhere.example>\r\n", b"DATA\r\n")
    return talk


def test_bare_lf_is_accepted_from_authenticated_clients() -> None:
    """Mail as Python's ``sendmail`` sends it is accepted: dots are unstuffed, CRLF.CRLF ends it."""
    sent = b"Subject: x\n\n.\n..\n...two\nplain\r\n.crlf\r\n..both\nend"
    stuffed = re.sub(rb"(?m)^\.", b"..", sent)
    assert stuffed.count(b"\n..") == sent.count(b"\n.")
    for cut in range(0, len(stuffed), 5):
        house = submission()
        talk = at_data_of_a_key(house)
        assert talk.say(stuffed[:cut], stuffed[cut:] + b"\n.\n", b"NOOP\n.\r\n") == b""
        assert talk.codes(b"x\r\n.\r\nNOOP\r\n") == ["250", "250"]
        assert house.messages == [sent + b"\n.\nNOOP\n.\r\nx\r\n"]


@rows(b"\r", b"\0", b"\n\r", b"\r\r\n", b"\0\n")
def test_other_bare_characters_are_rejected(stray: bytes) -> None:
    """A bare CR and a NUL are rejected from every client."""
    house = submission()
    talk = at_data_of_a_key(house)
    said = talk.say(b"Subject: x\n\nhello" + stray + b"more\r\n.\r\n")
    assert said.startswith(b"550 5.6.0 Message contains a bare CR or a NUL")
    assert talk.is_closed
    assert house.messages == []


def test_the_mail_port_says_what_to_do_about_bare_lf(house: House) -> None:
    """The mail port rejects bare LF; the reply names the Python calls that send CRLF."""
    said = house.at_data().say(b"Subject: x\n\nhello\r\n.\r\n")
    assert b"lines must end in CRLF: use send_message or as_bytes(policy=SMTP)" in said
    assert said.startswith(b"550 5.6.0 ")
    (refused,) = house.receiver.refused
    assert "as_bytes" in refused.reason
