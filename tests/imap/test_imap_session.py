"""IMAP sessions: login, mailboxes, flags, searches, appended mail and news."""

from base64 import b64encode

import pytest
from twisted.internet.defer import maybeDeferred
from twisted.internet.ssl import CertificateOptions

from mailcheck.config.options import InboxOptions
from mailcheck.connections.policies import offer_to_all
from mailcheck.core.addresses import parse_mailbox
from mailcheck.core.domains.watches import ALERT_TAG
from mailcheck.core.messages import Envelope, Session
from mailcheck.core.rights import Rights, Scope, make_rights
from tests.house import House, config_in_memory, mail, result_of, run
from tests.imap.imap_talk import FAR, Talk, make_factory, opened
from tests.table import rows


def seconds_old(house: House) -> int:
    """Return the UIDVALIDITY of the first account."""
    return house.account.created_at // 1000


def submit(house: House, recipient: str) -> None:
    """Receive a mail on the submission port, for a recipient elsewhere."""
    session = Session("192.0.2.7", "app.example", is_extended=True, account_id=house.account.id)
    accepted = maybeDeferred(
        house.receiver.accept_recipient, session, "app@shop.example", parse_mailbox(recipient)
    )
    envelope = Envelope("app@shop.example", (result_of(accepted),))
    result_of(house.receiver.deliver(session, envelope, mail()))


def lines(octets: bytes) -> list[bytes]:
    """Return the lines of responses."""
    return octets.split(b"\r\n")[:-1]


# Login.


@pytest.fixture
def talk(house: House) -> Talk:
    """Return a connection."""
    return Talk(house)


def test_greeting_and_capabilities(house: House, talk: Talk) -> None:
    """The greeting names the extensions; TLS and PLAIN are offered as far as they work."""
    assert talk.greeting.startswith(b"* OK [CAPABILITY IMAP4rev2 IMAP4rev1 ")
    assert b" AUTH=PLAIN]" in talk.greeting
    far = Talk(house, FAR, make_factory(house, offer_to_all(CertificateOptions())))
    assert b" STARTTLS LOGINDISABLED]" in far.greeting
    response = talk.do(b"capability")
    assert lines(response)[0][2:] in talk.greeting
    assert lines(response)[1:] == [b"x OK CAPABILITY completed"]


def test_a_far_client_needs_tls(house: House) -> None:
    """Without TLS, no password is accepted from a public address (RFC 9051 11.5)."""
    talk = Talk(house, FAR)
    assert talk.log_in(house.key) == b"x NO [PRIVACYREQUIRED] send STARTTLS first\r\n"
    assert talk.do(b"AUTHENTICATE PLAIN =").startswith(b"x NO [PRIVACYREQUIRED]")


@pytest.mark.parametrize("is_initial", [True, False])
def test_plain(house: House, talk: Talk, is_initial: bool) -> None:
    """AUTHENTICATE PLAIN takes an API key as the password, with or without initial response."""
    response = b64encode(f"\0anyone\0{house.key}".encode())
    if is_initial:
        sent = talk.do(b"AUTHENTICATE PLAIN " + response)
    else:
        assert talk.do(b"AUTHENTICATE PLAIN") == b"+ \r\n"
        sent = talk.send(response + b"\r\n")
    assert b" OK [CAPABILITY " in sent
    assert b"AUTH=PLAIN" not in sent, "there is no second login"
    assert talk.do(b"LOGIN a b").startswith(b"x BAD")


@rows(b"*", b"!", b"YQ==", b"")
def test_broken_responses(house: House, response: bytes) -> None:
    """A response that is cancelled or broken is rejected, and the next command works."""
    talk = Talk(house)
    assert talk.do(b"AUTHENTICATE PLAIN") == b"+ \r\n"
    assert b" BAD " in talk.send(response + b"\r\n")
    assert b"x OK" in talk.log_in(house.key)


def test_wrong_passwords_end_the_connection(house: House, talk: Talk) -> None:
    """A wrong password is rejected without a hint, and the third one ends the connection."""
    for _ in range(2):
        sent = talk.do(b'LOGIN "ann" {5+}\r\nwrong')
        assert sent.startswith(b"x NO [AUTHENTICATIONFAILED] ")
        assert not talk.is_closing
    assert lines(talk.log_in("wrong"))[1].startswith(b"* BYE ")
    assert talk.is_closing


def test_commands_before_the_login(house: House, talk: Talk) -> None:
    """Before the login, only a few commands are valid, and only a limited number of them."""
    assert talk.do(b"SELECT INBOX") == b"x BAD log in first\r\n"
    assert b'* ID ("name" "mailcheck")\r\n' in talk.do(b'ID ("name" "x" "version" NIL)')
    for _ in range(60):
        sent = talk.do(b"NOOP")
    assert talk.is_closing
    assert sent == b""


def test_starttls_drops_what_follows(house: House) -> None:
    """Input after STARTTLS in the same packet is not run inside TLS (CVE-2011-0411)."""
    talk = Talk(house, FAR, make_factory(house, offer_to_all(CertificateOptions())))
    sent = talk.send(b"a STARTTLS\r\nb NOOP\r\n")
    assert sent == b"* BYE input after STARTTLS\r\n"
    assert Talk(house).do(b"STARTTLS").startswith(b"x BAD")


def test_a_browser_is_turned_away(house: House, talk: Talk) -> None:
    """A request of a browser ends the connection at once."""
    sent = talk.send(b"POST / HTTP/1.1\r\na LOGIN any " + house.key.encode() + b"\r\n")
    assert sent == b"* BYE this is an IMAP server\r\n"


def test_logout(house: House) -> None:
    """LOGOUT says goodbye before it completes (RFC 9051 6.1.3)."""
    talk = opened(house)
    assert lines(talk.do(b"LOGOUT")) == [b"* BYE logging out", b"x OK LOGOUT completed"]
    assert talk.is_closing


def test_a_revoked_key_ends_the_connection(house: House) -> None:
    """The connection of a key that is revoked ends within seconds."""
    talk = opened(house)
    accounts = house.assembly.accounts
    (key,) = run(accounts.keep.list_keys(house.account))
    run(accounts.keep.revoke_key(key.id))
    run(accounts.ended_access.check())
    assert talk.take().startswith(b"* BYE ")
    assert talk.is_closing


# Mailboxes.


def test_list(house: House) -> None:
    """INBOX, the sandbox, the trash and the tags with mail are listed."""
    house.receive(house.address("shop/a&b"), house.address("Grüße"))
    talk = opened(house)
    assert lines(talk.do(b'LIST "" *')) == [
        rb'* LIST (\HasNoChildren) "/" "INBOX"',
        rb'* LIST (\HasNoChildren) "/" "Sandbox"',
        rb'* LIST (\Noselect \HasChildren) "/" "Tags"',
        rb'* LIST (\Noselect \HasChildren) "/" "Tags/shop"',
        rb'* LIST (\HasNoChildren) "/" "Tags/Gr&APwA3w-e"',
        rb'* LIST (\HasNoChildren) "/" "Tags/shop/a&-b"',
        rb'* LIST (\HasNoChildren \Trash) "/" "Trash"',
        b"x OK LIST completed",
    ]
    assert len(lines(talk.do(b'LIST Tags/ "%"'))) == 3
    assert lines(talk.do(b'LIST "" inbox'))[0].endswith(b'"INBOX"')
    assert lines(talk.do(b'LIST "" ""'))[0] == rb'* LIST (\Noselect) "/" ""'
    assert lines(talk.do(b'LSUB "" Trash'))[0].startswith(b"* LSUB ")
    talk.do(b"ENABLE UTF8=ACCEPT")
    assert 'Tags/Grüße"'.encode() in talk.do(b'LIST "" Tags/*')


def test_extended_list(house: House) -> None:
    """LIST returns subscriptions and the status of each mailbox (RFC 5258, RFC 5819)."""
    house.receive(house.address("a"))
    talk = opened(house)
    sent = talk.do(b'LIST (SUBSCRIBED) "" (INBOX Tags/*) RETURN (CHILDREN STATUS (MESSAGES))')
    assert lines(sent)[:-1] == [
        rb'* LIST (\HasNoChildren \Subscribed) "/" "INBOX"',
        b'* STATUS "INBOX" (MESSAGES 1)',
        rb'* LIST (\HasNoChildren \Subscribed) "/" "Tags/a"',
        b'* STATUS "Tags/a" (MESSAGES 1)',
    ]
    assert len(lines(talk.do(b'LIST (SPECIAL-USE) "" "*"'))) == 2
    assert talk.do(b'LIST (RECURSIVEMATCH) "" "*"').startswith(b"x BAD")


def test_select(house: House) -> None:
    """SELECT tells flags, counts, UIDs and the mod-sequence (RFC 9051 6.3.2, RFC 7162)."""
    house.receive()
    house.receive(house.address("a"))
    talk = opened(house)
    validity = str(seconds_old(house)).encode()
    sent = talk.do(b"SELECT Tags/A")
    assert lines(sent) == [
        b"* OK [CLOSED] the previous mailbox is closed",
        rb"* FLAGS (\Answered \Deleted \Draft \Flagged \Seen)",
        b"* 1 EXISTS",
        b"* 0 RECENT",
        b"* OK [UNSEEN 1] first unread message",
        rb"* OK [PERMANENTFLAGS (\* \Answered \Deleted \Draft \Flagged \Seen)] flags that are kept",
        b"* OK [UIDVALIDITY " + validity + b"] UIDs are valid",
        b"* OK [UIDNEXT 3] predicted next UID",
        b"* OK [HIGHESTMODSEQ 2] noted",
        b"x OK [READ-WRITE] SELECT completed",
    ]
    assert b"x OK [READ-ONLY]" in talk.do(b"EXAMINE INBOX (CONDSTORE)")
    assert talk.do(b"STORE 1 +FLAGS (a)").startswith(b"x NO [READ-ONLY]")
    assert talk.do(b"SELECT Nowhere").endswith(b"x NO [NONEXISTENT] no mailbox has this name\r\n")
    assert talk.do(b"FETCH 1 FLAGS").startswith(b"x BAD"), "the failed SELECT closed the mailbox"


def test_a_tag_can_be_selected_before_its_first_mail(house: House) -> None:
    """A test can open the mailbox of a tag and wait there for the first mail."""
    talk = opened(house, mailbox=b"Tags/signup")
    assert talk.do(b"IDLE") == b"+ idling\r\n"
    house.receive(house.address("signup"))
    assert talk.take() == b"* 1 EXISTS\r\n"
    assert talk.send(b"DONE\r\n").endswith(b" OK IDLE completed\r\n")


def test_status(house: House) -> None:
    """STATUS counts messages, unread and deleted ones, and octets."""
    talk = opened(house, mail(), mail("Second"))
    talk.do(rb"STORE 1 +FLAGS.SILENT (\Seen \Deleted)")
    sent = talk.do(b"STATUS inbox (MESSAGES UNSEEN DELETED SIZE UIDNEXT HIGHESTMODSEQ RECENT)")
    size = len(mail()) + len(mail("Second"))
    expected = (
        f'* STATUS "INBOX" (MESSAGES 2 UNSEEN 1 DELETED 1 SIZE {size} UIDNEXT 4 '
        "HIGHESTMODSEQ 3 RECENT 0)"
    )
    assert lines(sent)[1] == expected.encode()


def test_the_sandbox(house: House) -> None:
    """The sandbox has the mail that was caught for recipients of other domains."""
    house.receive(house.address("a"))
    submit(house, "ann@shop.example")
    talk = opened(house, mailbox=b"Sandbox")
    assert b"* 2 FETCH" not in talk.do(b"FETCH 1:* UID")
    assert lines(talk.do(b"UID FETCH 1:* FLAGS"))[0] == b"* 1 FETCH (UID 2 FLAGS ())"
    assert talk.do(b"APPEND Sandbox {1+}\r\nx").startswith(b"x NO [CANNOT]")


def test_mailboxes_cannot_be_changed(house: House) -> None:
    """Mailboxes follow from the mail, so they are not created, renamed or deleted."""
    talk = opened(house)
    assert talk.do(b"CREATE INBOX").startswith(b"x NO [ALREADYEXISTS]")
    assert talk.do(b"CREATE Tags/x").startswith(b"x NO [CANNOT]")
    assert talk.do(b"CREATE Drafts (USE (\\Drafts))").startswith(b"x NO [CANNOT]")
    assert talk.do(b"DELETE Tags/x").startswith(b"x NO [CANNOT]")
    assert talk.do(b"RENAME INBOX y").startswith(b"x NO [CANNOT]")
    assert talk.do(b"SUBSCRIBE Trash").startswith(b"x OK")
    assert talk.do(b"UNSUBSCRIBE Nowhere").startswith(b"x NO [NONEXISTENT]")
    assert talk.do(b"NAMESPACE").startswith(b'* NAMESPACE (("" "/")) NIL NIL\r\n')


# Rights.


def limited(house: House, rights: Rights) -> Talk:
    """Log in with a key that has these rights."""
    talk = Talk(house)
    talk.log_in(house.issue_key(house.account, rights=rights))
    return talk


def test_a_key_of_one_tag(house: House) -> None:
    """A key that is limited to a tag sees this tag only, in every mailbox and search."""
    house.receive(house.address("mine"), house.address("theirs"))
    talk = limited(house, make_rights(tags=("mine",)))
    listed = talk.do(b'LIST "" *')
    assert b"Tags/mine" in listed
    assert b"theirs" not in listed
    assert b"Sandbox" not in listed
    assert talk.do(b"STATUS INBOX (MESSAGES)").startswith(b'* STATUS "INBOX" (MESSAGES 1)')
    for hidden in (b"Tags/theirs", b"Tags/a..b", b"Sandbox"):
        for command in (b"SELECT %b", b"EXAMINE %b", b"STATUS %b (MESSAGES UIDNEXT)"):
            assert talk.do(command % hidden).startswith(b"x NO [NONEXISTENT]")
    assert b"* 1 EXISTS" in talk.do(b"SELECT INBOX")
    assert talk.do(b"SEARCH ALL").startswith(b"* SEARCH 1\r\n")
    assert lines(talk.do(b"UID FETCH 1:9 UID"))[:-1] == [b"* 1 FETCH (UID 1)"]
    assert talk.do(b"APPEND INBOX {1+}\r\nx").startswith(b"x NO [NOPERM]")
    assert b"x OK [APPENDUID" in talk.do(b"APPEND Tags/mine {1+}\r\nx")


def test_a_key_that_only_reads(house: House) -> None:
    """A key without the scope of writing opens mailboxes for reading, and changes no mark."""
    house.receive()
    talk = limited(house, Rights(frozenset({Scope.INBOX_READ})))
    sent = talk.do(b"SELECT INBOX")
    assert b"[PERMANENTFLAGS ()]" in sent
    assert b"x OK [READ-ONLY]" in sent
    assert b"Seen" not in talk.do(b"FETCH 1 BODY[]")
    assert talk.do(b"APPEND INBOX {1+}\r\nx").startswith(b"x NO [NOPERM]")
    assert not house.get("/inbox/messages").json["messages"][0].get("isRead")


def test_a_key_of_another_area(house: House, talk: Talk) -> None:
    """A key without the scope of reading mail cannot log in."""
    key = house.issue_key(house.account, rights=Rights(frozenset({Scope.DOMAINS})))
    assert talk.log_in(key).startswith(b"x NO [NOPERM]")


# Flags.


def test_flags(house: House) -> None:
    """Flags and keywords are kept; the read mark is that of the pages."""
    talk = opened(house, mail(), mail())
    sent = talk.do(rb"STORE 1 FLAGS (\seen $Work)")
    assert lines(sent) == [
        rb"* FLAGS ($Work \Answered \Deleted \Draft \Flagged \Seen)",
        rb"* 1 FETCH (FLAGS ($Work \Seen))",
        b"x OK STORE completed",
    ]
    assert talk.do(rb"UID STORE 2 +FLAGS.SILENT \Flagged") == b"x OK UID STORE completed\r\n"
    assert rb"FLAGS (\Flagged)" in talk.do(b"FETCH 2 FLAGS")
    assert talk.do(rb"STORE 2 +FLAGS \Recent").startswith(b"x BAD")
    assert talk.do(rb"STORE 3 +FLAGS x").startswith(b"x BAD")
    again = opened(house)
    assert rb"FLAGS ($Work \Seen)" in again.do(b"FETCH 1 FLAGS")
    found = house.get("/inbox/messages?q=is:read").json["messages"]
    assert len(found) == 1


def test_reading_sets_the_mark(house: House) -> None:
    """BODY[] marks a message as read and says so; BODY.PEEK[] does not (RFC 9051 6.4.5)."""
    talk = opened(house, mail())
    assert b"Seen" not in talk.do(b"FETCH 1 BODY.PEEK[]")
    assert rb"FLAGS (\Seen)" in talk.do(b"FETCH 1 BODY[TEXT]")
    assert talk.do(b"NOOP") == b"x OK NOOP completed\r\n", "the client knows its own change"


def test_conditional_store(house: House) -> None:
    """UNCHANGEDSINCE changes no message that was changed meanwhile (RFC 7162 3.1.3)."""
    talk, other = opened(house, mail(), mail()), opened(house)
    other.do(b"STORE 1 +FLAGS (theirs)")
    sent = talk.do(b"STORE 1:2 (UNCHANGEDSINCE 2) +FLAGS (mine)")
    assert b"* OK [HIGHESTMODSEQ 2] noted" in sent
    assert b"x OK [MODIFIED 1] STORE completed" in sent
    assert b"* 2 FETCH (FLAGS (mine) MODSEQ (4))" in sent
    assert b"* 1 FETCH (UID 1 FLAGS (theirs) MODSEQ (3))" in sent, "the news follow"
    assert lines(talk.do(b"FETCH 1:2 (UID) (CHANGEDSINCE 3)"))[:-1] == [
        b"* 2 FETCH (UID 2 MODSEQ (4))"
    ]
    assert talk.do(b"SEARCH MODSEQ 4").startswith(b"* SEARCH 2 (MODSEQ 4)\r\n")


# Deleting.


def test_expunge(house: House) -> None:
    """EXPUNGE deletes what is marked as deleted, and numbers change (RFC 9051 7.5.1)."""
    talk = opened(house, *[mail()] * 4)
    talk.do(rb"STORE 1,3:4 +FLAGS.SILENT \Deleted")
    assert lines(talk.do(b"UID EXPUNGE 4:9"))[:-1] == [b"* 4 EXPUNGE"]
    assert lines(talk.do(b"EXPUNGE"))[:-1] == [b"* 3 EXPUNGE", b"* 1 EXPUNGE"]
    assert lines(talk.do(b"FETCH 1:* UID"))[:-1] == [b"* 1 FETCH (UID 2)"]
    assert len(house.get("/inbox/messages").json["messages"]) == 1


@rows((b"CLOSE", False), (b"UNSELECT", True))
def test_close(house: House, command: bytes, is_left: bool) -> None:
    """CLOSE deletes without a response, UNSELECT does not delete (RFC 9051 6.4.1, 6.4.2)."""
    talk = opened(house, mail())
    talk.do(rb"STORE 1 +FLAGS.SILENT \Deleted")
    assert talk.do(command) == b"x OK " + command + b" completed\r\n"
    assert bool(house.get("/inbox/messages").json["messages"]) is is_left


def test_moving_to_the_trash_deletes(house: House) -> None:
    """MOVE to Trash deletes; messages cannot be copied or moved elsewhere."""
    talk = opened(house, mail(), mail())
    assert talk.do(b"COPY 1 Trash").startswith(b"x NO [CANNOT]")
    assert talk.do(b"MOVE 1 Tags/x").startswith(b"x NO [CANNOT]")
    assert lines(talk.do(b"UID MOVE 2 Trash")) == [b"* 2 EXPUNGE", b"x OK UID MOVE completed"]
    assert b"* 0 EXISTS" in talk.do(b"SELECT Trash")


# Appended mail.


def test_append(house: House) -> None:
    """A suite can preload an inbox; the mail is exactly what was sent, in the API as well."""
    talk = opened(house, mailbox=b"Tags/a")
    raw = b"From: ann@shop.example\r\nSubject: preloaded\r\n\r\n\x80 8 bit\r\n"
    announced = talk.do(b'APPEND Tags/a (\\Seen mine) "26-Nov-2020 10:00:00 +0000" {%d}' % len(raw))
    assert announced == b"+ send the literal\r\n"
    assert b"APPENDUID" in talk.send(raw[:9], raw[9:], b"\r\n")
    assert b"* 1 FETCH (FLAGS (\\Seen mine)" in talk.do(b"FETCH 1 FLAGS")
    assert raw in talk.do(b"FETCH 1 BODY.PEEK[]")
    (message,) = house.get("/inbox/messages?tag=a").json["messages"]
    assert message["subject"] == "preloaded"
    assert message["to"] == house.address("a")


def test_append_of_large_mails(house: House) -> None:
    """A mail over the limit is rejected before it is sent."""
    talk = opened(house)
    most = house.assembly.runtime.config.smtp.max_message_size
    assert talk.do(b"APPEND INBOX {%d}" % (most + 70_000)).startswith(b"x NO [TOOBIG]")
    assert talk.do(b"NOOP") == b"x OK NOOP completed\r\n"
    assert talk.send(b"a APPEND INBOX {5000+}\r\n").startswith(b"* BYE [TOOBIG]")


def test_append_to_a_full_inbox() -> None:
    """The quota of the inbox holds for appended mail."""
    house = House(config_in_memory(inbox=InboxOptions(max_messages=1)))
    talk = opened(house, mail())
    assert talk.do(b"APPEND INBOX {1+}\r\nx").startswith(b"x NO [OVERQUOTA]")


def test_reserved_tags(house: House) -> None:
    """Mail for a tag of the service itself cannot be appended."""
    talk = opened(house)
    sent = talk.do(b"APPEND Tags/" + ALERT_TAG.encode() + b" {1+}\r\nx")
    assert sent.startswith(b"x NO the tag ")


def test_names_in_utf_8(house: House) -> None:
    """After UTF8=ACCEPT, names are UTF-8, and an ampersand stands for itself (RFC 6855 3)."""
    house.receive(house.address("ü"), house.address("a&-b"))
    talk = opened(house)
    assert b"MESSAGES 1" in talk.do(b"STATUS Tags/&APw- (MESSAGES)")
    assert b"* ENABLED UTF8=ACCEPT" in talk.do(b"ENABLE UTF8=ACCEPT UNKNOWN")
    assert b"MESSAGES 1" in talk.do('STATUS "Tags/ü" (MESSAGES)'.encode())
    assert b"MESSAGES 1" in talk.do(b"STATUS Tags/a&-b (MESSAGES)")


# News.


def test_news_between_commands(house: House) -> None:
    """New mail and changed flags are told with the next command, deletions only where they may."""
    talk, other = opened(house, mail(), mail()), opened(house)
    house.receive()
    other.do(rb"STORE 1 +FLAGS (a)")
    other.do(b"UID MOVE 2 Trash")
    first = talk.do(b"FETCH 1 UID")
    assert lines(first) == [
        b"* 1 FETCH (UID 1)",
        b"* 3 EXISTS",
        b"* 1 FETCH (UID 1 FLAGS (a))",
        b"x OK FETCH completed",
    ], "no number changes during FETCH"
    assert lines(talk.do(b"UID FETCH 1 UID"))[1] == b"* 2 EXPUNGE"
    assert talk.do(b"NOOP") == b"x OK NOOP completed\r\n"


def test_idle(house: House) -> None:
    """A client in IDLE is told about new mail, opened mail, deletions and expiry."""
    talk = opened(house, mail())
    talk.do(b"IDLE")
    house.receive()
    assert talk.take() == b"* 2 EXISTS\r\n"
    other = opened(house)
    other.do(rb"STORE 1 +FLAGS \Seen")
    assert talk.take() == b"* 1 FETCH (UID 1 FLAGS (\\Seen))\r\n"
    assert house.ask("DELETE", "/inbox/messages").answer().status == 200
    assert talk.take() == b"* 2 EXPUNGE\r\n* 1 EXPUNGE\r\n"
    assert talk.send(b"NOOP\r\n").endswith(b" BAD send DONE\r\n")


def test_idle_notices_expiry() -> None:
    """Expired mail has no notification; a client in IDLE is told all the same."""
    house = House(config_in_memory(inbox=InboxOptions(retention_hours=1)))
    talk = opened(house, mail())
    for _ in range(3):
        talk.do(b"IDLE")
        house.clock.advance(1_190)
        talk.send(b"DONE\r\n")
    talk.do(b"IDLE")
    house.clock.advance(120)
    assert talk.take() == b"* 1 EXPUNGE\r\n* OK still here\r\n"


def test_searches_see_own_messages_only(house: House) -> None:
    """A UID that the client does not know is never returned."""
    talk = opened(house, mail())
    house.receive()
    assert talk.do(b"SEARCH ALL").startswith(b"* SEARCH 1\r\n* 2 EXISTS\r\n")


@rows(b"STARTTLS", b"LOGIN a b", b"AUTHENTICATE PLAIN AGEAYg==")
def test_a_second_login_is_rejected(house: House, command: bytes) -> None:
    """Commands that belong before the login are BAD after it, and the session goes on."""
    talk = Talk(house)
    talk.log_in(house.key)
    assert talk.do(command).startswith(b"x BAD ")
    assert b"x OK" in talk.do(b"NOOP")
