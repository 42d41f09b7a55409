"""SMTP smuggling: content that tries to be the next mail, and commands that try to be content.

The sequences are those of the 2023 disclosure (CVE-2023-51764, -51765, -51766, CVE-2024-27305),
and every other pair of line ends that some server has taken for the end of a mail. The promise is
the same for all: a mail ends at CR LF . CR LF, it has one reply, and its content is never executed.
"""

from itertools import product

import pytest

from tests.smtp.talk import MAIL, RCPT, House, Talk
from tests.table import rows

pytestmark = pytest.mark.attack

EVIL = b"MAIL FROM:<evil@client.example>\r\nRCPT TO:<dev-victim@inbox.example>\r\nDATA\r\nowned"
FINAL_DOT = b"\r\n.\r\n"

LINE_ENDS = (
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\r",
    b"\r\r\n",
    b"\r\n\n",
    b"\r\0\n",
    b"\0\r\n",
    b"\r\n\0",
    b"\n\n",
    b"\r\r",
    b"\0",
    b"",
    b"\x85",  # NEL
    b"\x0b",  # VT
    b"\x0c",  # FF
    "\u2028".encode(),  # LINE SEPARATOR
)

SEQUENCES = [
    before + b"." + after
    for before, after in product(LINE_ENDS, repeat=2)
    if FINAL_DOT not in before + b"." + after
]

OPENINGS = [sequence for sequence in SEQUENCES if FINAL_DOT not in b"\r\n" + sequence]


def nothing_was_obeyed(house: House) -> bool:
    """Return whether neither the malicious sender nor the victim was seen."""
    asked = all("evil" not in sender for _, sender, _ in house.receiver.asked)
    known = all("evil" not in mail.envelope.envelope_sender for mail in house.receiver.delivered)
    return asked and known


@rows(*LINE_ENDS)
def test_no_other_sequence_ends_a_mail(before: bytes) -> None:
    """A sequence that looks like an end is content, also with a packet boundary at each octet.

    The one reply follows the true end.
    """
    for sequence in SEQUENCES:
        if not sequence.startswith(before + b"."):
            continue
        content = b"hello" + sequence + EVIL
        for cut in range(4, 7 + len(sequence)):
            house = House()
            talk = house.at_data()
            assert talk.say(content[:cut], content[cut:]) == b"", (sequence, cut)
            (code,) = talk.codes(FINAL_DOT)
            assert nothing_was_obeyed(house), (sequence, cut)
            taken = [EVIL in raw for raw in house.messages]
            assert (code, taken) in (("250", [True]), ("550", [])), (sequence, cut)


def test_no_sequence_ends_a_mail_at_its_beginning() -> None:
    """The CRLF of the DATA line may be part of the end, but only with a CRLF after the dot."""
    for sequence in OPENINGS:
        house = House()
        talk = house.at_data()
        assert talk.say(sequence + EVIL) == b"", sequence
        assert len(talk.codes(FINAL_DOT)) == 1, sequence
        assert nothing_was_obeyed(house), sequence


@pytest.mark.parametrize("control", [b"\n", b"\r", b"\0", b"\r\r\n", b"\n\r"], ids=repr)
@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_a_mail_with_strays_is_never_delivered(control: bytes, place: str) -> None:
    """A mail with a stray control character is rejected, and the rest is not executed."""
    content = {
        "first": control + b"Subject: x\r\n\r\nhello",
        "middle": b"Subject: x" + control + b"\r\nhello",
        "last": b"Subject: x\r\n\r\nhello" + control,
    }[place]
    house = House()
    talk = house.at_data()
    behind = MAIL.replace(b"<s@", b"<evil@") + RCPT + b"DATA\r\nowned\r\n.\r\n"
    assert talk.codes(content + FINAL_DOT + behind) == ["550"]
    assert talk.is_closed
    assert house.messages == []
    assert nothing_was_obeyed(house)


def pipelined(house: House) -> tuple[Talk, bytes]:
    """Return two honest mails in one stream, the first with commands as content."""
    talk = house.greeted()
    first = MAIL + RCPT + b"DATA\r\n" + EVIL + b"\r\n..\r\nQUIT\r\n.\r\n"
    second = MAIL + RCPT + b"DATA\r\nsecond\r\n.\r\n"
    return talk, first + second + b"NOOP\r\n"


def test_commands_inside_a_mail_are_content() -> None:
    """A pipelining client may send commands as content: replies and mails stay in step."""
    house = House()
    talk, stream = pipelined(house)
    assert talk.codes(stream) == ["250", "250", "354", "250"] * 2 + ["250"]
    assert house.messages == [EVIL + b"\r\n.\r\nQUIT\r\n", b"second\r\n"]
    assert nothing_was_obeyed(house)


def test_no_cut_of_the_stream_makes_content_a_command() -> None:
    """Every cut of the stream into two packets has the same replies and the same mails."""
    _, stream = pipelined(House())
    for cut in range(1, len(stream)):
        house = House()
        talk, _ = pipelined(house)
        assert talk.codes(stream[:cut], stream[cut:]) == ["250", "250", "354", "250"] * 2 + ["250"]
        assert house.messages == [EVIL + b"\r\n.\r\nQUIT\r\n", b"second\r\n"]


@rows(998, 2_048, 16_384, 16_385, 65_536, 1_000_000)
def test_a_long_line_stays_content(length: int) -> None:
    """twisted.mail's own receiver executed the text after a DATA line over 16,384 octets."""
    house = House()
    talk = house.at_data()
    content = b"Subject: x\r\n\r\n" + b"A" * length + b"\r\n" + EVIL
    pieces = [content[n : n + 65_536] for n in range(0, len(content), 65_536)]
    assert talk.say(*pieces) == b""
    assert talk.codes(FINAL_DOT) == ["250"]
    assert house.messages == [content + b"\r\n"]
    assert nothing_was_obeyed(house)


def test_a_mail_that_is_too_large_stays_content() -> None:
    """Dropped content is not executed either."""
    house = House(limits={"message_size": 100})
    talk = house.at_data()
    assert talk.say(b"A" * 200 + b"\r\n" + EVIL, b"\r\n" + EVIL) == b""
    assert talk.codes(FINAL_DOT) == ["552"]
    assert nothing_was_obeyed(house)


@rows(
    b"a@b.example>\nRCPT TO:<dev-victim@inbox.example",
    b"a@b.example>\rRCPT TO:<dev-victim@inbox.example",
    b"a\0@b.example",
    b'"a\nb"@b.example',
    b'"a\rb"@b.example',
)
def test_no_control_reaches_an_address(address: bytes) -> None:
    """Mailpit's GHSA-54wq-72mp-cq7c: a CR or LF in an address would reach headers and logs."""
    house = House()
    talk = house.greeted()
    assert talk.codes(b"MAIL FROM:<" + address + b">\r\n") == ["500"]
    assert talk.is_closed
    assert house.receiver.asked == []


def test_a_chunk_hides_no_commands() -> None:
    """The octets of a chunk are counted, so that no wrong size turns content into commands."""
    house = House()
    talk = house.greeted()
    talk.say(MAIL + RCPT)
    body = EVIL + FINAL_DOT
    assert talk.codes(b"BDAT %d LAST\r\n" % len(body) + body + b"NOOP\r\n") == ["250", "250"]
    assert house.messages == [body]
    assert nothing_was_obeyed(house)
