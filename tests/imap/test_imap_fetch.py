"""FETCH and SEARCH: exact bytes, sections, structures, and the filters of the store."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail
from twisted.internet.testing import StringTransport

from mailcheck.assembly.workers import Workers
from mailcheck.core.errors import WorkerDied
from mailcheck.workers.scheduling import DirectWorker
from tests.house import House, config_in_memory, mail
from tests.imap.imap_talk import Talk, opened
from tests.table import rows

INNER = b"Subject: inner\r\nFrom: in@x.example\r\n\r\ninner body\r\n"
NESTED = (
    b"From: =?utf-8?q?J=C3=B6rg?= <a@x.example>\r\n"
    b"To: Undisclosed: ;\r\n"
    b'Cc: "Ann, Bee" <ann@y.example>, bob@y.example\r\n'
    b'Subject: a "quoted"\r\n  subject\r\n'
    b"Date: Thu, 26 Nov 2026 23:30:00 -0500\r\n"
    b"Message-ID: <1@x.example>\r\n"
    b"MIME-Version: 1.0\r\n"
    b"Content-Type: multipart/mixed; boundary=b\r\n\r\n"
    b"preamble\r\n--b\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\n\r\ntext \xc3\xa4\r\n--b\r\n"
    b"Content-Type: message/rfc822\r\n\r\n" + INNER + b"\r\n--b\r\n"
    b'Content-Type: application/pdf; name="x.pdf"\r\n'
    b"Content-Transfer-Encoding: base64\r\n"
    b"Content-Disposition: attachment; filename*=utf-8''%C3%A4.pdf\r\n\r\naGVs\r\nbG8=\r\n--b--\r\n"
)


def value(talk: Talk, section: bytes) -> bytes:
    """Return the octets of a section of the first message."""
    sent = talk.do(b"FETCH 1 " + section)
    assert b"x OK" in sent, sent
    found = re.match(rb"[^\]]*\](?:<\d+>)? (?:NIL|~?\{(\d+)\}\r\n)", sent)
    assert found is not None, sent
    return b"NIL" if found[1] is None else sent[found.end() :][: int(found[1])]


@pytest.mark.parametrize(
    "raw",
    [
        NESTED,
        b"Subject: bare\n\nline feeds\n",
        b"Subject: no body",
        b"",
        b"\xff\x00binary\r\n\r\n\x00",
        b"Subject: large\r\n\r\n" + b"x" * 200_000,
    ],
)
def test_exact_bytes(house: House, raw: bytes) -> None:
    """BODY[] has the bytes that were received, so that signatures verify."""
    talk = opened(house, raw)
    assert value(talk, b"BODY.PEEK[]") == raw
    assert value(talk, b"BODY.PEEK[HEADER]") + value(talk, b"BODY.PEEK[TEXT]") == raw
    assert b"".join(value(talk, b"BODY.PEEK[]<%d.70000>" % n) for n in (0, 70_000, 140_000)) == raw
    assert b"RFC822.SIZE %d)" % len(raw) in talk.do(b"FETCH 1 RFC822.SIZE")


@rows(
    (b"BODY.PEEK[1]", "text ä".encode()),
    (b"BODY.PEEK[1.MIME]", b"Content-Type: text/plain; charset=utf-8\r\n\r\n"),
    (b"BODY.PEEK[2]", INNER),
    (b"BODY.PEEK[2.HEADER]", b"Subject: inner\r\nFrom: in@x.example\r\n\r\n"),
    (b"BODY.PEEK[2.TEXT]", b"inner body\r\n"),
    (b"BODY.PEEK[2.1]", b"inner body\r\n"),
    (b"BODY.PEEK[2.HEADER.FIELDS (from)]", b"From: in@x.example\r\n\r\n"),
    (b"BODY.PEEK[3]<2.3>", b"Vs\r"),
    (b"BINARY.PEEK[3]", b"hello"),
    (b"BINARY.PEEK[3]<1.2>", b"el"),
    (
        b"BODY.PEEK[HEADER.FIELDS (subject Nothing)]",
        b'Subject: a "quoted"\r\n  subject\r\n\r\n',
    ),
    (b"BODY.PEEK[HEADER.FIELDS (nothing)]", b"\r\n"),
    (b"BODY.PEEK[HEADER.FIELDS (subject)]<3.4>", b"ject"),
    (b"BODY.PEEK[4]", b"NIL"),
    (b"BODY.PEEK[1.1]", b"NIL"),
    (b"BODY.PEEK[1.TEXT]", b"NIL"),
)
def test_sections(house: House, section: bytes, octets: bytes) -> None:
    """Parts have the numbers and ranges of RFC 9051 6.4.5.1."""
    assert value(opened(house, NESTED), section) == octets


def test_header_fields_not(house: House) -> None:
    """HEADER.FIELDS.NOT leaves fields out, and keeps the others as they were."""
    names = b"from to cc subject date message-id content-type"
    sent = value(opened(house, NESTED), b"BODY.PEEK[HEADER.FIELDS.NOT (%s)]" % names)
    assert sent == b"MIME-Version: 1.0\r\n\r\n"


def test_a_mail_of_one_part(house: House) -> None:
    """A mail without a multipart has one part, which is its body."""
    talk = opened(house, mail(body="hello"))
    assert value(talk, b"BODY.PEEK[1]") == value(talk, b"BODY.PEEK[TEXT]") == b"hello\r\n"
    assert value(talk, b"BODY.PEEK[1.1]") == b"NIL"
    assert b"RFC822.TEXT {7}\r\nhello\r\n" in talk.do(b"FETCH 1 RFC822.TEXT")


def test_envelope(house: House) -> None:
    """The envelope has the fields of the header, with encoded words for other scripts."""
    sent = opened(house, NESTED).do(b"FETCH 1 ENVELOPE")
    author = b'(("=?utf-8?B?SsO2cmc=?=" NIL "a" "x.example"))'
    assert sent.startswith(
        b'* 1 FETCH (ENVELOPE ("Thu, 26 Nov 2026 23:30:00 -0500" "a \\"quoted\\"  subject" '
        + b" ".join([author] * 3)
        + b' ((NIL NIL "Undisclosed" NIL)(NIL NIL NIL NIL)) '
        b'(("Ann, Bee" NIL "ann" "y.example")(NIL NIL "bob" "y.example")) NIL NIL '
        b'"<1@x.example>"))\r\n'
    )


def test_body_structure(house: House) -> None:
    """BODYSTRUCTURE describes each part; an attached mail has its envelope and structure."""
    talk = opened(house, NESTED)
    sent = talk.do(b"FETCH 1 BODYSTRUCTURE")
    inner = b'(NIL "inner" ((NIL NIL "in" "x.example")) '
    assert sent.startswith(
        b'* 1 FETCH (BODYSTRUCTURE (("TEXT" "PLAIN" ("CHARSET" "utf-8") NIL NIL "7BIT" 7 0 '
        b'NIL NIL NIL NIL)("MESSAGE" "RFC822" NIL NIL NIL "7BIT" %d ' % len(INNER) + inner
    )
    assert b'("TEXT" "PLAIN" NIL NIL NIL "7BIT" 12 1 NIL NIL NIL NIL) 4 NIL NIL NIL NIL)' in sent
    assert (
        b'("APPLICATION" "PDF" ("NAME" "x.pdf") NIL NIL "BASE64" 10 NIL '
        b'("ATTACHMENT" ("FILENAME*" "utf-8\'\'%C3%A4.pdf")) NIL NIL) "MIXED" '
        b'("BOUNDARY" "b") NIL NIL NIL)' in sent
    )
    assert sent == talk.do(b"FETCH 1 BODYSTRUCTURE"), "it is stored"
    assert b'"BASE64" 10) "MIXED")' in talk.do(b"FETCH 1 BODY")


def test_uuencoded_text_is_one_part(house: House) -> None:
    """A text with a uuencoded file in it has one part, although the pages show the file."""
    body = b"see\r\nbegin 644 a.txt\r\n#0V%T\r\n`\r\nend\r\n"
    talk = opened(house, b"Subject: x\r\n\r\n" + body)
    assert b'("TEXT" "PLAIN" NIL NIL NIL "7BIT" %d 5 ' % len(body) in talk.do(
        b"FETCH 1 BODYSTRUCTURE"
    )
    assert value(talk, b"BODY.PEEK[1]") == body


def test_an_unknown_encoding(house: House) -> None:
    """BINARY of a part in an unknown encoding is refused with its code (RFC 3516 4.3)."""
    raw = b"Content-Transfer-Encoding: x-odd\r\n\r\nabc"
    talk = opened(house, mail(), raw)
    sent = talk.do(b"FETCH 1:2 (UID BINARY.PEEK[1])")
    assert sent.startswith(b"* 1 FETCH (UID 1 BINARY[1] {")
    assert sent.endswith(b")\r\nx NO [UNKNOWN-CTE] the part has an unknown transfer encoding\r\n")
    assert b"* 2 FETCH" not in sent, "no response is sent in part"


def test_deleted_messages_are_left_out(house: House) -> None:
    """A message that another program has deleted has no response."""
    talk, other = opened(house, mail(), mail()), opened(house)
    other.do(b"MOVE 1 Trash")
    assert talk.do(b"FETCH 1:2 (UID BODY.PEEK[])").count(b"FETCH (UID") == 1


class SlowTransport(StringTransport):
    """A transport whose client reads one piece at a time."""

    def write(self, data: bytes) -> None:
        """Write, and pause after each large piece."""
        super().write(data)
        if len(data) > 1_000 and self.producer is not None:
            self.producer.pauseProducing()


def test_large_mails_are_sent_as_fast_as_they_are_read(house: House) -> None:
    """While the client does not read, at most one piece is in memory; then it is disconnected."""
    raw = b"Subject: large\r\n\r\n" + b"x" * 3_000_000
    house.receive(raw=raw)
    talk = Talk(house, transport=SlowTransport)
    talk.log_in(house.key)
    talk.do(b"SELECT INBOX")
    pieces = [talk.send(b"f FETCH 1 BODY.PEEK[]\r\n")]
    while talk.transport.producer is not None:
        talk.transport.producer.resumeProducing()
        pieces.append(talk.take())
    assert max(map(len, pieces)) < 70_000
    assert raw in b"".join(pieces)
    talk.send(b"f FETCH 1 BODY.PEEK[]\r\n")
    house.clock.advance(121)
    assert talk.transport.disconnected or talk.is_closing


def test_a_client_that_goes_away(house: House) -> None:
    """A connection that is lost during FETCH releases its places for large mails."""
    house.receive(raw=b"Subject: large\r\n\r\n" + b"x" * 3_000_000)
    for _ in range(5):
        talk = Talk(house, transport=SlowTransport)
        talk.log_in(house.key)
        talk.do(b"SELECT INBOX")
        talk.send(b"f FETCH 1 BODY.PEEK[]\r\n")
        assert talk.transport.producer is not None
        talk.transport.producer.stopProducing()
        talk.lose()


def test_a_response_that_breaks_off(house: House) -> None:
    """After a failure in the middle of a response, the connection ends: its end is not known."""
    raw = (
        b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n"
        + b"x" * 100_000
        + b"\r\n--b\r\nContent-Transfer-Encoding: x-odd\r\n\r\ny\r\n--b--\r\n"
    )
    talk = opened(house, raw)
    assert b"UNKNOWN-CTE" not in talk.do(b"FETCH 1 (BODY.PEEK[1] BINARY.PEEK[2])")
    assert talk.is_closing


class PoisonedWorker(DirectWorker):
    """A worker that dies when it describes a certain mail."""

    def run(self, call: Callable[[], Any], owner: str = "") -> Deferred[Any]:
        """Run a call."""
        mails = call.args[0] if isinstance(call, partial) else ()
        if isinstance(mails, list) and any(b"poison" in one for one in mails):
            return fail(WorkerDied("the content process has died"))
        return super().run(call)


def test_a_mail_that_cannot_be_described() -> None:
    """A mail that stops the worker has a bare structure, and the others have their own."""
    workers = Workers(DirectWorker(), DirectWorker(), PoisonedWorker())
    house = House(config_in_memory(), workers)
    talk = opened(house, mail("one"), mail("poison"), mail("three"))
    sent = talk.do(b"FETCH 1:3 (ENVELOPE BODYSTRUCTURE)")
    assert sent.count(b"\r\n* ") + 1 == 3
    assert b"* 2 FETCH (ENVELOPE (NIL NIL NIL " in sent
    assert b'"three"' in sent


# Searches.


@pytest.fixture
def searched(house: House) -> Talk:
    """A selected inbox of three mails, of which the second one has marks."""
    talk = opened(house, NESTED, mail("Welcome", "blue"), mail("Welcome", "red"))
    talk.do(rb"STORE 2 +FLAGS.SILENT (\Seen \Flagged Work)")
    house.get("/inbox/messages")  # derives the contents
    return talk


@rows(
    (b"ALL", b"1 2 3"),
    (b"SUBJECT welcome", b"2 3"),
    (b"SUBJECT WELCOME BODY blue", b"2"),
    (b"FROM shop", b"2 3"),
    ('FROM "jörg"'.encode(), b"1"),
    (b"CC ann@y", b"1"),
    (b"HEADER message-id 1@x", b"1"),
    (b'HEADER MIME-Version ""', b"1"),
    (b"TEXT blue", b"2"),
    (b"TEXT .pdf", b"1"),
    (b"NOT SUBJECT welcome", b"1"),
    (b"OR SUBJECT quoted BODY blue", b"1 2"),
    (b"LARGER 300", b"1"),
    (b"SMALLER 300", b"2 3"),
    (b"SINCE 21-Nov-2026", b"1 2 3"),
    (b"BEFORE 21-Nov-2026", b""),
    (b"ON 21-Nov-2026", b"1 2 3"),
    (b"SENTON 26-Nov-2026", b"1"),
    (b"SENTBEFORE 26-Nov-2026", b"2 3"),
    (b"2:*", b"2 3"),
    (b"UID 2,7:9", b"2"),
    (b"UNSEEN", b"1 3"),
    (b"SEEN FLAGGED", b"2"),
    (b"KEYWORD work", b"2"),
    (b"UNKEYWORD work", b"1 3"),
    (b"NEW", b""),
    (b"OLD (1 NOT (2))", b"1"),
)
def test_search(searched: Talk, key: bytes, numbers: bytes) -> None:
    """Each key finds what the same filter of the API finds (RFC 9051 6.4.4)."""
    expected = (b"* SEARCH " + numbers).rstrip() + b"\r\nx OK SEARCH completed\r\n"
    assert searched.do(b"SEARCH " + key) == expected


SEVERAL = (
    "From: a@x.example, Bea Second <second@y.example>\r\nSubject: Bestätigung\r\n"
    "Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\n\r\nsee HTML\r\n"
    "--b\r\nContent-Type: text/html\r\n\r\n<p>Zugspitze voucher</p>\r\n--b--\r\n"
).encode()


FOUND = (
    "FROM second@y.example",
    "FROM bea",
    "FROM a@x",
    "TEXT second@y.example",
    "TEXT alternative",
    'BODY "zugspitze voucher"',
    "BODY see",
    "TEXT Zugspitze",
    'CHARSET utf8 SUBJECT "Bestätigung"',
    'CHARSET "UTF8" UNSEEN',
    "CHARSET UTF-8 SUBJECT {12+}\r\nBestätigung",
    'CHARSET utf_8 SUBJECT "Bestätigung"',
    "CHARSET csUTF8 ALL",
    "CHARSET us-ascii ALL",
    "CHARSET ascii ALL",
)
NOT_FOUND = ("FROM zugspitze", "BODY second@y", "TEXT nobody")


def test_authors_and_words_are_searched_wherever_they_are(house: House) -> None:
    """Every author, all fields and words of HTML alone are found, before and after derivation."""
    talk = opened(house, SEVERAL)
    for _ in range(2):
        for key in (*FOUND, *NOT_FOUND):
            expected = b"* SEARCH 1\r\n" if key in FOUND else b"* SEARCH\r\n"
            assert talk.do(b"SEARCH " + key.encode()).startswith(expected), key
        house.get("/inbox/messages")  # derives the contents


def test_extended_search(house: House) -> None:
    """RETURN chooses what the response has, and SAVE keeps the result for ``$``."""
    talk = opened(house, *[mail()] * 5)
    talk.do(b"MOVE 2 Trash")
    assert talk.do(b"UID SEARCH RETURN (MIN MAX COUNT ALL) ALL").startswith(
        b'* ESEARCH (TAG "t4") UID MIN 1 MAX 5 ALL 1,3:5 COUNT 4\r\n'
    )
    assert talk.do(b"SEARCH RETURN (SAVE) UID 3:4") == b"x OK SEARCH completed\r\n"
    assert talk.do(b"FETCH $ UID").count(b"FETCH (UID") == 2
    assert talk.do(b"SEARCH RETURN (COUNT) $ 1:3").startswith(b'* ESEARCH (TAG "t7") COUNT 2\r\n')
    assert talk.do(b"SEARCH RETURN (MIN) SUBJECT nothing").startswith(b'* ESEARCH (TAG "t8")\r\n')
    talk.do(b"ENABLE IMAP4rev2")
    assert talk.do(b"SEARCH 2").startswith(b'* ESEARCH (TAG "t10") ALL 2\r\n')
    assert talk.do(b"SEARCH CHARSET latin1 ALL").startswith(b"x NO [BADCHARSET")


def test_numbers_of_other_mailboxes(house: House) -> None:
    """Numbers and searches refer to the selected mailbox."""
    house.receive(house.address("a"), house.address("b"), house.address("a"))
    talk = opened(house, mailbox=b"Tags/a")
    assert talk.do(b"SEARCH SUBJECT welcome").startswith(b"* SEARCH 1 2\r\n")
    assert talk.do(b"UID SEARCH UNSEEN").startswith(b"* SEARCH 1 3\r\n")
    assert talk.do(b"FETCH 3 UID").startswith(b"x BAD")
    assert talk.do(b"UID FETCH 2 UID") == b"x OK UID FETCH completed\r\n"
