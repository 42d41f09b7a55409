"""Deletions on the page that can be undone, as mail programs see them."""

import pytest

from mailcheck.core.instants import SECOND
from mailcheck.core.messages import UNDO_TIME
from mailcheck.operations.inbox.messages import Deletion
from tests.house import House, mail, run
from tests.imap import pop3_talk
from tests.imap.imap_talk import Talk, opened

SOON = UNDO_TIME // SECOND - 1


def delete_first(house: House) -> Deletion:
    """Delete the oldest message as the page does."""
    oldest = house.get("/inbox/messages").json["messages"][-1]["id"]
    deletion: Deletion = run(house.assembly.inbox.delete.some_with_undo(house.account.id, [oldest]))
    assert deletion.count == 1
    return deletion


def undo(house: House, deletion: Deletion) -> int:
    """Undo a deletion; return the number of messages that are back."""
    count: int = run(house.assembly.inbox.delete.undo(house.account.id, deletion.deleted_at))
    return count


def pass_time(house: House, seconds: float) -> None:
    """Let time pass, and remove what has expired then."""
    house.clock.advance(seconds)
    run(house.assembly.mail.retention.sweep())


def uids(talk: Talk) -> bytes:
    """Return the UIDs of a new look at the mailbox."""
    talk.do(b"SELECT INBOX")
    return talk.do(b"UID SEARCH ALL").split(b"\r\n")[0]


def pop3_list(house: House) -> bytes:
    """Return the messages of a new POP3 session, with their sizes."""
    talk = pop3_talk.Talk(house)
    talk.log_in(house.key)
    return talk.say(b"STAT").split(b" ")[1]


def test_an_undone_deletion_was_never_told(house: House) -> None:
    """A deletion that is undone changes nothing for mail programs: no UID comes back.

    RFC 9051 2.3.1.1: a UID that was expunged must not be used again.
    """
    idle, talk = opened(house, mail("one"), mail("two")), opened(house)
    idle.do(b"IDLE")
    cursor = house.get("/inbox").json["cursor"]
    deletion = delete_first(house)
    assert house.get("/inbox").json["total"] == 1, "the page and the API hide it at once"
    pass_time(house, SOON)
    assert idle.take() == b""
    assert talk.do(b"NOOP") == b"x OK NOOP completed\r\n"
    assert uids(talk) == b"* SEARCH 1 2"
    assert b"Subject: one" in talk.do(b"FETCH 1 BODY.PEEK[HEADER]")
    assert b"(MESSAGES 2 UNSEEN 2)" in talk.do(b"STATUS INBOX (MESSAGES UNSEEN)")
    assert pop3_list(house) == b"2"
    assert undo(house, deletion) == 1
    pass_time(house, 2 * SOON)
    assert idle.take() == b""
    assert talk.do(b"NOOP") == b"x OK NOOP completed\r\n"
    assert uids(talk) == b"* SEARCH 1 2"
    wait = house.ask("GET", f"/inbox/wait?after={cursor}&timeout=1")
    house.pass_time(1)
    assert wait.answer().status == 408, "no client is told again about mail that it has seen"


def test_a_final_deletion_is_told(house: House) -> None:
    """When a deletion cannot be undone any more, mail programs are told at once."""
    idle, talk = opened(house, mail("one"), mail("two")), opened(house)
    idle.do(b"IDLE")
    pop3 = pop3_talk.Talk(house)
    pop3.log_in(house.key)
    deletion = delete_first(house)
    pass_time(house, SOON + 1)
    assert undo(house, deletion) == 0
    assert idle.take() == b"* 1 EXPUNGE\r\n"
    assert talk.do(b"NOOP") == b"* 1 EXPUNGE\r\nx OK NOOP completed\r\n"
    assert uids(talk) == b"* SEARCH 2"
    assert pop3.say(b"RETR 1").startswith(b"-ERR the message has been deleted")
    assert pop3_list(house) == b"1"
    house.receive()
    assert uids(talk) == b"* SEARCH 2 3"


@pytest.mark.parametrize("is_pop3", [True, False])
def test_a_program_deletes_it_as_well(house: House, is_pop3: bool) -> None:
    """A message that a program deletes meanwhile cannot be restored, so its UID stays unused."""
    talk = opened(house, mail("one"), mail("two"))
    deletion = delete_first(house)
    if is_pop3:
        pop3 = pop3_talk.Talk(house)
        pop3.log_in(house.key)
        assert pop3.say(b"DELE 1", b"QUIT").endswith(b"+OK 1 messages deleted\r\n")
        assert talk.do(b"NOOP").startswith(b"* 1 EXPUNGE\r\n")
    else:
        assert talk.do(b"MOVE 1 Trash").startswith(b"* 1 EXPUNGE\r\n")
    assert undo(house, deletion) == 0
    assert uids(talk) == b"* SEARCH 2"


def test_an_undone_deletion_of_a_marked_message(house: House) -> None:
    """Flags that a program sets on a hidden message are there after the deletion is undone."""
    talk = opened(house, mail())
    deletion = delete_first(house)
    assert b"FLAGS (\\Flagged)" in talk.do(rb"STORE 1 +FLAGS (\Flagged)")
    assert undo(house, deletion) == 1
    assert b"FLAGS (\\Flagged)" in opened(house).do(b"FETCH 1 FLAGS")
