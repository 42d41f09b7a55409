"""Hostile mail on the pages, as a parser sees the documents that a browser gets.

`tests/browser/test_browser_hostile_mail.py` loads the same mails in a browser.
"""

import re
from html.parser import HTMLParser

import pytest

from mailcheck.checks.content.safe_html import SHOWN
from mailcheck.core.accounts import Account
from mailcheck.core.identifiers import MessageId
from tests.attacks.hostile_mails import HostileMail, read_hostile_mails
from tests.house import House, config_in_memory, run
from tests.table import rows
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.conftest import CHEAP
from tests.web.dashboard.inbox_visit import fetch, receive, share_path, sign_up

pytestmark = [pytest.mark.attack, pytest.mark.untraced]

MAILS = read_hostile_mails()

OWN = frozenset(("html", "head", "meta", "title", "link", "style", "body"))
"""Elements of the frame's document that are not part of the mail."""

VIEWS = ("text", "headers")
"""The views of both pages, besides the one that opens first."""

POLICY = "sandbox allow-same-origin allow-popups allow-popups-to-escape-sandbox"
"""The first directive of the frame's policy. It has no ``allow-scripts``."""

REACHES_OUT = re.compile(r"@import|@font-face|url\s*\(|expression|javascript:|\\", re.IGNORECASE)


class Document(HTMLParser):
    """Lists the harmful elements and attributes in the document of a frame."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self._is_style = False
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Check an element and its attributes."""
        self._is_style = tag == "style"
        if tag not in SHOWN | OWN:
            self.found.append(f"<{tag}>")
        for name, value in attrs:
            if name.startswith("on") or name in (
                "srcset",
                "srcdoc",
                "action",
                "formaction",
                "ping",
            ):
                self.found.append(f"{tag} {name}")
            if name in ("src", "background") and not (value or "").startswith("data:image/"):
                self.found.append(f"{tag} {name}={value}")
            if name == "href" and not re.match(r"https?://|mailto:|tel:|data:,$", value or ""):
                self.found.append(f"{tag} {name}={value}")
            if name == "style" and REACHES_OUT.search(value or ""):
                self.found.append(f"{tag} {name}={value}")

    def handle_data(self, data: str) -> None:
        """Check style sheets."""
        if self._is_style and REACHES_OUT.search(data):
            self.found.append(data)


@pytest.fixture
def visitor() -> Browser:
    """A browser for the pages of one application."""
    house = House(config_in_memory(accounts=CHEAP))
    return Browser(house)


@pytest.fixture
def owner(visitor: Browser) -> Account:
    """The account of the visitor."""
    return sign_up(visitor)


def test_there_are_many() -> None:
    """The collection contains at least 60 attacks, each once."""
    assert len({(mail.raw_message, mail.tag) for mail in MAILS}) == len(MAILS) >= 60


@rows(*MAILS)
def test_hostile_mail_is_shown_as_text(visitor: Browser, owner: Account, mail: HostileMail) -> None:
    """Page and share page stay complete, with the same harmless document in both.

    A mail of nothing but HTML has the header and the structure of others, so one further view shows
    what became of it. Other mails are shown in every view.
    """
    message_id = receive(visitor.house, owner, mail.raw_message, mail.tag)
    page, share = f"/inbox/messages/{message_id}", share_path(visitor, message_id)
    views = [f"{share}?view=text"]
    if not mail.is_html_only:
        views = [f"{path}?view={view}" for path in (page, share) for view in VIEWS]
        views += [share, f"{page}?view=source"]
    assert [visitor.open(view).status for view in views] == [200] * len(views)
    documents = []
    for query in ("", "?remote=true"):
        frame, shared = (fetch(visitor, f"{path}/frame{query}") for path in (page, share))
        assert shared.body == frame.body
        policy = frame.headers["content-security-policy"]
        assert policy.partition(";")[0] == POLICY
        assert "allow-scripts" not in policy
        documents.append(frame.body.decode())
    assert Document(documents[0]).found == []
    # No row lists other mail.
    run(visitor.house.assembly.inbox.delete.one(owner.id, MessageId(message_id)))
