"""Hostile mail in a real browser: nothing runs, nothing is fetched, nothing leads away.

Each mail is shown on its page and on the page of its share link, as it is
shown to people; then with one of the two defences taken away, sanitiser or
policy, since each has to hold alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Route

from tests.attacks.hostile_mails import HostileMail, read_hostile_mails
from tests.browser.people import Person, make_account
from tests.browser.watching import OneBrowser, Watched, watched_page
from tests.servers.daemon import Daemon

pytestmark = pytest.mark.attack

MAILS = read_hostile_mails()
WITH_HTML = [mail for mail in MAILS if mail.html]
PAGES = ("message", "share")
OWN_FRAMES = ("/frame", "/frame?remote=true", "/preview")
UNUSED = ("", "about:blank")
"""Frames whose document was not asked for yet."""


@dataclass(frozen=True)
class Shelf:
    """All hostile mails in an inbox, and where each of them is shown."""

    watched: Watched
    person: Person
    paths: dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def shelf(one_browser: OneBrowser, pages_daemon: Daemon) -> Iterator[Shelf]:
    """Receive all hostile mails."""
    with watched_page(one_browser.running(), pages_daemon.http_port) as watched:
        person = make_account(watched, pages_daemon)
        for mail in MAILS:
            person.get_mail(mail.raw_message, mail.tag)
        watched.go("/inbox?limit=500")
        links = watched.page.locator("#mails a").evaluate_all(
            "links => links.map(link => new URL(link.href).pathname)"
        )
        assert len(links) == len(MAILS)
        paths = {}
        for mail, link in zip(MAILS, reversed(links), strict=True):
            watched.go(f"{link}?view=headers")
            share = watched.page.locator("#share-link").get_attribute("href") or ""
            paths[mail.name] = {"message": link, "share": urlsplit(share).path}
        watched.require_quiet()
        yield Shelf(watched, person, paths)


@pytest.fixture
def quiet(shelf: Shelf) -> Iterator[Watched]:
    """Watch one test."""
    shelf.watched.forget()
    yield shelf.watched
    shelf.watched.page.unroute_all()


def provoke(watched: Watched) -> None:
    """Do what a reader does: move over the mail, click into it, go through it by keyboard."""
    page = watched.page
    for x, y in ((300, 400), (500, 500)):
        page.mouse.move(x, y)
    page.mouse.wheel(0, 300)
    for _ in range(2):
        page.keyboard.press("Tab")


def require_stay(watched: Watched, address: str) -> None:
    """Fail when the page or a frame of it went anywhere."""
    assert watched.page.url == watched.origin + address
    assert {urlsplit(url).netloc for url in watched.moves} <= {urlsplit(watched.origin).netloc}
    frames = [frame.url for frame in watched.page.frames[1:]]
    assert all(url in UNUSED or url.endswith(OWN_FRAMES) for url in frames), frames


@pytest.mark.parametrize("where", PAGES)
@pytest.mark.parametrize("mail", MAILS, ids=lambda mail: mail.name)
def test_nothing_runs_or_is_fetched(
    shelf: Shelf, quiet: Watched, mail: HostileMail, where: str
) -> None:
    """A hostile mail is only looked at: no script, no request, no way out, no complaint."""
    path = shelf.paths[mail.name][where]
    quiet.go(path)
    for closed in quiet.page.locator(".attachments summary").all():
        closed.click()
    provoke(quiet)
    require_stay(quiet, path)
    quiet.require_quiet()


@pytest.mark.parametrize("mail", WITH_HTML, ids=lambda mail: mail.name)
def test_remote_content_is_images_only(shelf: Shelf, quiet: Watched, mail: HostileMail) -> None:
    """With remote content asked for, images are fetched, and nothing but images.

    Message page and share page show the same document (`test_attack_hostile_mail.py`).
    """
    path = f"{shelf.paths[mail.name]['share']}?view=html&remote=true"
    quiet.go("/healthz")  # nothing of the page before goes on, and this one is our own
    with quiet.page.expect_navigation():
        # As a link on our own page asks: one from elsewhere gets no remote content.
        quiet.page.evaluate("path => location.assign(path)", path)
    provoke(quiet)
    require_stay(quiet, path)
    quiet.take_unloaded_images()
    quiet.require_quiet()


@pytest.mark.parametrize("view", ["text", "headers", "source"])
@pytest.mark.parametrize(
    "mail", [mail for mail in MAILS if not mail.html], ids=lambda mail: mail.name
)
def test_every_view_is_quiet(shelf: Shelf, quiet: Watched, mail: HostileMail, view: str) -> None:
    """Hostile texts, headers and sources are shown as what they are: text."""
    for where in PAGES:
        path = f"{shelf.paths[mail.name][where]}?view={view}"
        quiet.go(path)
        provoke(quiet)
        require_stay(quiet, path)
    quiet.require_quiet()


def test_the_list_is_quiet(shelf: Shelf, quiet: Watched) -> None:
    """A list of hostile subjects, senders and tags runs nothing; nor do they as they come in."""
    quiet.go("/inbox?limit=500")
    quiet.page.locator("#live[data-state=open]").wait_for()
    count = quiet.page.locator("#mails li").count()
    hostile = [mail for mail in MAILS if not mail.html]
    for number, mail in enumerate(hostile):
        shelf.person.get_mail(mail.raw_message, mail.tag)
        quiet.page.locator("#mails li").nth(count + number).wait_for()
    provoke(quiet)
    quiet.require_quiet()


@pytest.mark.parametrize("mail", WITH_HTML, ids=lambda mail: mail.name)
def test_the_sanitiser_holds_alone(shelf: Shelf, quiet: Watched, mail: HostileMail) -> None:
    """Shown as a page of our own site, without sandbox and policy, a mail still does nothing."""

    def take_policy_away(route: Route) -> None:
        response = route.fetch()
        headers = {
            name: value
            for name, value in response.headers.items()
            if name != "content-security-policy"
        }
        route.fulfill(response=response, headers=headers)

    path = f"{shelf.paths[mail.name]['message']}/frame"
    quiet.page.route(f"**{path}", take_policy_away)
    quiet.go(path)
    for _ in range(3):
        quiet.page.keyboard.press("Tab")
    require_stay(quiet, path)
    quiet.require_quiet()


@pytest.mark.parametrize("mail", WITH_HTML, ids=lambda mail: mail.name)
def test_the_policy_holds_alone(shelf: Shelf, quiet: Watched, mail: HostileMail) -> None:
    """Put into the frame as it came, a mail runs nothing, fetches nothing, leads nowhere."""

    def take_sanitiser_away(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, body=f"<!doctype html>{mail.html}")

    path = f"{shelf.paths[mail.name]['message']}?view=html"
    quiet.page.route("**/frame", take_sanitiser_away)
    quiet.go(path)
    provoke(quiet)
    assert quiet.page.url == quiet.origin + path
    went = {urlsplit(url).scheme: urlsplit(url).netloc for url in quiet.moves}
    assert went.pop("http") == urlsplit(quiet.origin).netloc
    assert went.keys() <= {"about", "chrome-error"}  # frames inside of the mail that were refused
    # The browser says what it has refused; what ran would have opened a dialog or asked elsewhere.
    assert (quiet.dialogs, quiet.sent_elsewhere(), quiet.pages[1:]) == ([], [], [])


def test_the_watch_sees_what_a_mail_does(shelf: Shelf, quiet: Watched) -> None:
    """With both defences taken away, what a mail runs, fetches and opens is noticed."""
    mail = (
        "<img src=https://canary.test/1><script>alert(1); open('https://canary.test/2')</script>"
        "<meta http-equiv=refresh content='0;url=https://canary.test/3'>"
    )
    page = quiet.page
    page.route("**/frame", lambda route: route.fulfill(body=mail, content_type="text/html"))
    with page.expect_popup(), page.expect_request("https://canary.test/3"):
        page.goto(f"{quiet.origin}{shelf.paths['script']['message']}/frame", wait_until="commit")
    asked = {"image https://canary.test/1", "document https://canary.test/3"}
    assert asked <= set(quiet.elsewhere)
    assert "https://canary.test/1" in quiet.sent_elsewhere()
    assert quiet.dialogs == ["1"]
    assert len(quiet.pages) == 2
    quiet.pages.pop().close()
