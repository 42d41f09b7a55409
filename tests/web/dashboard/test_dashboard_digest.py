"""The page of the digest, and the mailboxes on the page of received reports."""

from msgspec.structs import replace

from mailcheck.core.domains.report_mailboxes import ReportMailbox
from mailcheck.core.instants import HOUR, MINUTE, Instant
from tests.house import result_of
from tests.web.dashboard.browser import Browser


def test_a_digest_is_chosen(ann: Browser) -> None:
    """The form keeps what was chosen, names mistakes, and ends the digest."""
    assert "Digest" in ann.read("/domains")
    assert "The next one is due" not in ann.read("/digest")
    ann.follow(ann.submit("/digest", every="week", to="", quiet="22:00-08:00"))
    assert "The digest has been saved." in ann.words
    assert "The next one is due 2026-11-23 06:00" in ann.words
    for to, quiet, problem in (
        ("x", "", "is not a mail address"),
        ("", "late", "must be two times of day"),
    ):
        assert ann.submit("/digest", every="month", to=to, quiet=quiet).status == 400
        assert problem in ann.words
    assert "22:00-08:00" in ann.open("/digest").body.decode()
    ann.follow(ann.submit("/digest", every="never", to="", quiet=""))
    assert "The next one is due" not in ann.words


def test_mailboxes_are_listed(ann: Browser) -> None:
    """Members see the mailboxes of their project, with the problem and the next attempt."""
    runtime, fetching = ann.house.assembly.runtime, ann.house.assembly.reports.fetching
    own = ReportMailbox("ann", "imap.example.com", 993, user="r@example.com", password="secret")
    fetching.change([own, replace(own, account_name="other", user="hidden@example.com")])
    assert "r@example.com at imap.example.com, INBOX: not read yet" in ann.read("/reports")
    now = runtime.now()
    result_of(fetching.store.claim(own.id, "daemon", now, MINUTE))
    problem = "The server rejected <b>the sign-in</b>."
    result_of(fetching.store.finish(own.id, "daemon", Instant(now + HOUR), problem, 1))
    page = ann.read("/reports")
    assert "cannot be read The server rejected <b>the sign-in</b>." in page
    assert "Next attempt 2026-11-21 13:00" in page
    assert "hidden@example.com" not in page
