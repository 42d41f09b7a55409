"""Answers that clients of CONDSTORE, ESEARCH and LIST-EXTENDED depend on, sentence by sentence."""

from mailcheck.store.mailbox_store import MAX_FLAGS
from tests.house import House, mail
from tests.imap.imap_talk import Talk, opened
from tests.imap.test_imap_session import lines
from tests.table import rows


def answer(talk: Talk, command: bytes) -> list[bytes]:
    """Return the untagged responses to a command that succeeds, without the tag of a search."""
    *responses, last = lines(talk.do(command))
    assert last.startswith(b"x OK"), last
    return [one.replace(b'(TAG "t%d") ' % talk.number, b"") for one in responses]


def test_search_by_mod_sequence(house: House) -> None:
    """A search with MODSEQ returns the highest mod-sequence of what it returns.

    RFC 7162 3.1.5, and RFC 4731 3.2 for MIN and MAX. The first one enables CONDSTORE (3.1).
    """
    talk = opened(house, mail(), mail(), mail())
    talk.do(b"STORE 1 +FLAGS (a)")
    talk.do(b"STORE 3 +FLAGS (a)")
    for command, response in (
        (b"SEARCH MODSEQ 4", b"* SEARCH 1 3 (MODSEQ 5)"),
        (b"SEARCH 1 MODSEQ 4", b"* SEARCH 1 (MODSEQ 4)"),
        (b'UID SEARCH NOT MODSEQ "/flags/\\\\Seen" all 4', b"* SEARCH 2 (MODSEQ 2)"),
        (b"SEARCH MODSEQ 6", b"* SEARCH"),
        (b"SEARCH RETURN (ALL) MODSEQ 4", b"* ESEARCH ALL 1,3 MODSEQ 5"),
        (b"SEARCH RETURN (COUNT) OR MODSEQ 4 2", b"* ESEARCH COUNT 3 MODSEQ 5"),
        (b"SEARCH RETURN (MIN) MODSEQ 1", b"* ESEARCH MIN 1 MODSEQ 4"),
        (b"UID SEARCH RETURN (MAX) MODSEQ 1", b"* ESEARCH UID MAX 3 MODSEQ 5"),
        (b"SEARCH RETURN (MIN MAX) MODSEQ 1", b"* ESEARCH MIN 1 MAX 3 MODSEQ 5"),
        (b"SEARCH RETURN (COUNT) MODSEQ 6", b"* ESEARCH COUNT 0"),
    ):
        talk = opened(house)
        assert answer(talk, command) == [b"* OK [HIGHESTMODSEQ 5] noted", response]
        assert answer(talk, command) == [response]


def test_reading_changes_the_mod_sequence(house: House) -> None:
    r"""With CONDSTORE, a FETCH that sets \Seen tells the new mod-sequence (RFC 7162 3.1.4)."""
    talk = opened(house, mail(), mail())
    assert answer(talk, b"FETCH 1 BODY[]<0.1>")[0].startswith(b"* 1 FETCH (FLAGS (\\Seen) BODY")
    talk.do(b"ENABLE CONDSTORE")
    found = answer(talk, b"UID FETCH 2 BODY[]<0.1>")
    assert found[0].startswith(b"* 2 FETCH (UID 2 FLAGS (\\Seen) MODSEQ (4) BODY[]<0> {1}")
    assert answer(talk, b"UID FETCH 2 BODY.PEEK[]<0.1>")[0].startswith(b"* 2 FETCH (UID 2 BODY[]")


def test_a_failed_search_saves_an_empty_result(house: House) -> None:
    """A search with SAVE that is NO leaves an empty result, one that is BAD the old one.

    RFC 9051 6.4.4.1.
    """
    talk = opened(house, mail(), mail())
    talk.do(b"SEARCH RETURN (SAVE) 1")
    assert talk.do(b"SEARCH RETURN (SAVE) NOSUCHKEY").startswith(b"x BAD")
    assert talk.do(b"SEARCH CHARSET x ALL").startswith(b"x NO [BADCHARSET")
    assert answer(talk, b"SEARCH $") == [b"* SEARCH 1"]
    assert answer(talk, b"SEARCH RETURN (SAVE) OR $ 2") == []
    assert answer(talk, b"SEARCH $") == [b"* SEARCH 1 2"]
    assert talk.do(b"SEARCH RETURN (SAVE) CHARSET x ALL").startswith(b"x NO [BADCHARSET")
    assert answer(talk, b"SEARCH $") == [b"* SEARCH"]
    assert answer(talk, b"FETCH $ FLAGS") == []


def test_keywords_have_any_case(house: House) -> None:
    """Keywords that differ only in case are one; a message keeps its spelling (RFC 9051 9)."""
    talk = opened(house, mail(), mail())
    flags = rb"* FLAGS (Foo \Answered \Deleted \Draft \Flagged \Seen)"
    assert answer(talk, b"STORE 1 +FLAGS (Foo FOO)")[1] in {
        b"* 1 FETCH (FLAGS (Foo))",
        b"* 1 FETCH (FLAGS (FOO))",
    }
    talk.do(b"STORE 1 FLAGS ()")
    assert answer(talk, b"STORE 1 +FLAGS (Foo)")[-1] == b"* 1 FETCH (FLAGS (Foo))"
    assert answer(talk, b"STORE 1 +FLAGS (foo)") == [b"* 1 FETCH (FLAGS (Foo))"]
    assert answer(talk, b"STORE 1 FLAGS (foo)") == [b"* 1 FETCH (FLAGS (Foo))"]
    talk.do(b"STORE 2 +FLAGS.SILENT (FOO)")
    assert answer(talk, b"SEARCH KEYWORD fOO") == [b"* SEARCH 1 2"]
    other = opened(house)
    shown = answer(other, b"SELECT INBOX")[1].upper()
    assert shown == flags.upper()
    assert answer(talk, b"STORE 1:2 -FLAGS (fOo)") == [
        b"* 1 FETCH (FLAGS ())",
        b"* 2 FETCH (FLAGS ())",
    ]


def test_a_message_has_a_limited_number_of_keywords(house: House) -> None:
    """A change that would give a message more flags than the maximum is refused as a whole."""
    talk = opened(house, mail())
    for first in range(0, MAX_FLAGS, 50):
        names = b" ".join(b"k%d" % number for number in range(first, first + 50))
        assert b"x OK" in talk.do(b"STORE 1 +FLAGS.SILENT (%s)" % names)
    assert lines(talk.do(b"STORE 1 +FLAGS.SILENT (one.more)"))[-1].startswith(b"x NO ")
    assert b"x OK" in talk.do(b"STORE 1 -FLAGS.SILENT (k1)")
    assert b"x OK" in talk.do(b"STORE 1 +FLAGS.SILENT (one.more)")


def test_subscribed_mailboxes(house: House) -> None:
    """A parent without mail is not subscribed; RECURSIVEMATCH says what is below it.

    RFC 5258 3.5 and 4, and for LSUB RFC 3501 6.3.9.
    """
    house.receive(house.address("a"))
    talk = opened(house)
    parent = rb'"/" "Tags"'
    assert rb"* LIST (\Noselect \HasChildren) " + parent in answer(talk, b'LIST "" *')
    found = answer(talk, b'LIST (SUBSCRIBED) "" *')
    assert len(found) == 4
    assert all(b"\\Subscribed" in one for one in found)
    assert parent not in b"".join(answer(talk, b'LIST (SUBSCRIBED) "" %'))
    assert rb'* LIST (\Noselect \HasChildren) "/" "Tags" ("CHILDINFO" ("SUBSCRIBED"))' in answer(
        talk, b'LIST (SUBSCRIBED RECURSIVEMATCH) "" %'
    )
    assert rb"* LSUB (\Noselect \HasChildren) " + parent in answer(talk, b'LSUB "" %')
    assert parent not in b"".join(answer(talk, b'LSUB "" *'))


@rows(b"inb*", b"INb%", b"%nBOX", b"inbox", b"*")
def test_the_inbox_has_any_case(house: House, pattern: bytes) -> None:
    """A pattern matches INBOX in any case (RFC 9051 5.1), and other names in their own."""
    talk = opened(house)
    assert b'"INBOX"' in answer(talk, b'LIST "" ' + pattern)[0]
    assert answer(talk, b'LIST "" sand*') == []


@rows(b"", b"TEXT", b"HEADER")
def test_large_numbers_of_octets(house: House, part: bytes) -> None:
    """A partial FETCH may name 63-bit numbers (RFC 9051 9, number64)."""
    talk = opened(house, mail())
    fetch, largest = b"FETCH 1 BODY.PEEK[%s]" % part, 2**63 - 1
    whole = answer(talk, fetch)[0].partition(b"] ")[2]
    assert answer(talk, fetch + b"<0.%d>" % largest)[0].partition(b"]<0> ")[2] == whole
    for start in (5_000_000_000, largest):
        end = b"]<%d> {0}" % start
        assert answer(talk, fetch + b"<%d.%d>" % (start, largest))[0].endswith(end)
    assert talk.do(fetch + b"<%d.1>" % (largest + 1)).startswith(b"x BAD")


def test_dates_of_appended_mail(house: House) -> None:
    """APPEND with a malformed date is BAD, and stores no mail (RFC 9051 9, date-time)."""
    talk = opened(house)
    raw = mail()
    literal = b"{%d+}\r\n" % len(raw) + raw
    for date in (b"nonsense", b"", b"1-Feb-2020", b"01-Feb-2020 1:00:00 +0000"):
        assert talk.do(b'APPEND INBOX "%s" ' % date + literal).startswith(b"x BAD")
    for date in (b" 1-Feb-2020 10:00:00 +0100", b"28-nov-2026 23:59:60 -0030"):
        assert b"x OK" in talk.do(b'APPEND INBOX (a) "%s" ' % date + literal)
    assert answer(talk, b"SEARCH ALL") == [b"* SEARCH 1 2"]
