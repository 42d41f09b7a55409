"""Mails, each once with all its recipients."""

from typing import Any

import pytest

from mailcheck.core.accounts import Caller
from mailcheck.core.conditions import (
    WITH_SUBJECT,
    WITH_TEXT,
    WITH_WORDS,
    Not,
    Term,
    Where,
    sent_to,
)
from mailcheck.core.filters import ANY, MessageFilter
from mailcheck.core.rights import make_rights
from mailcheck.operations.inbox.mails import Mails
from tests.house import House, mail, run


def caller_of(house: House, **rights: Any) -> Caller:
    """Return the caller of a key."""
    key = house.issue_key(house.account, rights=make_rights(**rights)) if rights else house.key
    caller: Caller = run(house.assembly.accounts.authenticator.identify(key))
    return caller


@pytest.fixture
def caller(house: House) -> Caller:
    """The caller of the first account's key."""
    return caller_of(house)


@pytest.fixture
def mails(house: House) -> Mails:
    """The operations."""
    return house.assembly.inbox.mails


def search(*parts: Where) -> MessageFilter:
    """Return a filter with these expressions."""
    return MessageFilter(search=parts)


def found(mails: Mails, caller: Caller, wanted: MessageFilter = ANY) -> list[str]:
    """Return the subjects of the matching mails, newest first."""
    page = run(mails.page(caller, wanted, 50, 0))
    assert page.matches.total == len(page.mails)
    return [one.message.summary.header.subject for one in page.mails]


def test_a_mail_to_several_recipients_is_listed_once(
    house: House, mails: Mails, caller: Caller
) -> None:
    """It has all its recipients and tags; each list counts it once."""
    house.receive(house.address("a"), house.address("b"), house.address("c"))
    house.receive(raw=mail("Second"))
    assert found(mails, caller) == ["Second", "Welcome"]
    page = run(mails.page(caller, ANY, 1, 1))
    (one,) = page.mails
    assert (page.matches.total, page.inbox.total, page.inbox.unread) == (2, 2, 2)
    assert (one.tags, len(one.hidden_recipients)) == (["a", "b", "c"], 3)


def test_a_limited_key_sees_the_part_of_a_mail_that_has_its_tag(house: House, mails: Mails) -> None:
    """A key for the second tag of a mail finds the mail, and only that recipient."""
    house.receive(house.address("a"), house.address("b"))
    limited = caller_of(house, tags=("b",))
    (one,) = run(mails.page(limited, ANY, 9, 0)).mails
    assert one.tags == ["b"]
    assert found(mails, caller_of(house, tags=("c",))) == []


def test_a_search_finds_mail_whose_content_was_not_derived(
    house: House, mails: Mails, caller: Caller
) -> None:
    """The first search after the arrival of a mail already knows its text."""
    house.receive()
    assert found(mails, caller, search(Term(WITH_TEXT, "482913"))) == ["Welcome"]
    assert found(mails, caller, search(Term(WITH_TEXT, "482914"))) == []


HEADERS = (
    b"From: Shop <shop@example.com>\r\nTo: you@example.com\r\nCc: boss@example.com\r\n"
    b"Reply-To: help@example.com\r\nMessage-ID: <one@example.com>\r\nSubject: Copies\r\n\r\nHi\r\n"
)


@pytest.fixture
def copied(house: House) -> None:
    """A mail with copies is in the inbox."""
    house.receive(house.address("first"), house.address("hidden"), raw=HEADERS)


def test_a_recipient_of_the_mail(copied: None, mails: Mails, caller: Caller) -> None:
    """The author is no recipient."""
    assert found(mails, caller, search(sent_to("+hidden"))) == ["Copies"]
    assert found(mails, caller, search(sent_to("shop@"))) == []


def test_negated_words_and_texts_together(house: House, mails: Mails, caller: Caller) -> None:
    """A word that must be missing does not hide mails that have the others."""
    house.receive(raw=mail("First", "red green"))
    house.receive(raw=mail("Second", "red blue"))
    red, green = Term(WITH_TEXT, "red"), Not(Term(WITH_WORDS, "green"))
    assert found(mails, caller, search(red, green)) == ["Second"]
    assert found(mails, caller, search(green, Term(WITH_WORDS, "blue"), red)) == ["Second"]


def test_marking_and_deleting_whole_mails(house: House, mails: Mails, caller: Caller) -> None:
    """All messages of the matching mails are marked or deleted, and no others."""
    house.receive(house.address("a"), house.address("b"))
    house.receive(raw=mail("Second"))
    first = run(mails.page(caller, ANY, 1, 1)).mails[0].id
    run(mails.mark(caller, MessageFilter(mails=(first,)), is_read=True))
    assert run(mails.mail(caller, first)).is_read
    assert run(mails.page(caller, ANY, 9, 0)).inbox.unread == 1
    run(mails.mark(caller, ANY, is_read=False))
    assert run(mails.page(caller, ANY, 9, 0)).inbox.unread == 2
    run(mails.delete(caller, search(Term(WITH_TEXT, "482913"), Term(WITH_SUBJECT, "Welcome"))))
    assert found(mails, caller) == ["Second"]
    assert len(house.get("/inbox/messages").json["messages"]) == 1
