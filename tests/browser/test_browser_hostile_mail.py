"""Hostile mail in a real browser: no script, no request and no navigation.

Each mail is shown on its page and on the page of its share link. Then one of the two
defences is removed, the sanitizer or the policy, since each must be sufficient alone.

Loading a page takes far longer than showing a mail on it. HTML is therefore tested with many
mails on a page, each in the article and the frame that the server renders for it. After a
failure each mail is loaded alone, and the failure names the mails that caused it.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import APIResponse, Error, Route

from tests.attacks.hostile_mails import HostileMail, read_hostile_mails
from tests.browser.people import Person, make_account
from tests.browser.watching import OneBrowser, Watched, watched_page
from tests.servers.daemon import Daemon

pytestmark = pytest.mark.attack

MAILS = read_hostile_mails()
WITH_HTML = [mail for mail in MAILS if mail.html]
WITHOUT_HTML = [mail for mail in MAILS if not mail.html]
PAGES = ("message", "share")
OWN_FRAMES = ("/frame", "/frame?remote=true", "/preview")
UNUSED = ("", "about:blank")
"""Addresses of frames that have not been loaded yet."""

Mails = Sequence[HostileMail]

TOGETHER = 28
"""Number of mails on a page."""


def _in_batches(mails: Mails) -> Sequence[Mails]:
    return [mails[start : start + TOGETHER] for start in range(0, len(mails), TOGETHER)]


def _name_of(mails: object) -> str | None:
    if not isinstance(mails, list):
        return None
    return mails[0].name if len(mails) == 1 else f"{mails[0].name} to {mails[-1].name}"


HTML_TOGETHER = pytest.mark.parametrize("mails", _in_batches(WITH_HTML), ids=_name_of)

FRAMES_OF_ARTICLES = """
    [...document.querySelectorAll("article.mail")]
        .filter(one => !one.parentElement.closest("article"))
        .map(one => [...one.querySelectorAll(":scope > .mail-body > iframe")])
        .map(frames => frames.map(one => one.getAttribute("src")))
"""

FRAME = re.compile(r'<iframe class="mail-frame"[^>]* src="([^"]+)"')

PREPARE_THE_OTHERS = """
    for (const one of [...document.querySelectorAll("article.mail")].slice(1)) {
        window.mailcheck.prepareMail(one);
    }
"""
"""Prepares further mails on a page as the page itself prepares the first one."""

REACH_FRAME = """number => {
    const frame = document.querySelectorAll("iframe")[number];
    frame.scrollIntoView();
    frame.focus();
    const { left, top } = frame.getBoundingClientRect();
    return [left, top];
}"""


@dataclass(frozen=True)
class Shelf:
    """All hostile mails in an inbox, with the paths that show each of them."""

    watched: Watched
    person: Person
    paths: dict[str, dict[str, str]]

    def begin(self) -> None:
        """Leave the last page and start from a page of the site itself."""
        self.watched.page.unroute_all()
        self.watched.go("/healthz")
        self.watched.forget()

    def show(self, mails: Mails, where: str, query: str = "") -> str:
        """Load the page of the first mail, with the other mails added below it."""
        page = self.watched.page
        paths = [self.paths[mail.name][where] + query for mail in mails]
        responses = [self._fetch(path) for path in paths] if len(mails) > 1 else []
        if responses:
            head, _, foot = _cut(responses[0])
            body = head + "".join(_cut(response)[1] for response in responses) + foot
            page.route(
                self.watched.origin + paths[0],
                lambda route: route.fulfill(response=responses[0], body=body),
            )
        with page.expect_navigation():
            # Remote content requires a link on a page of the site.
            page.evaluate("path => location.assign(path)", paths[0])
        if responses:
            frames = [FRAME.findall(_cut(response)[1]) for response in responses]
            assert page.evaluate(FRAMES_OF_ARTICLES) == frames, "a mail has left its article"
            page.evaluate(PREPARE_THE_OTHERS)
        return paths[0]

    def _fetch(self, path: str) -> APIResponse:
        return self.watched.context.request.get(
            self.watched.origin + path,
            headers={"Accept": "text/html", "Sec-Fetch-Site": "same-origin"},
        )


def _cut(response: APIResponse) -> tuple[str, str, str]:
    """Split a page into the parts before, in and after its article."""
    head, article, rest = response.text().partition('<article class="mail"')
    inside, end, foot = rest.rpartition("</article>")
    return head, article + inside + end, foot


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
            shown = watched.context.request.get(f"{watched.origin}{link}?view=headers").text()
            share = re.search(r'id="share-link" href="([^"]+)"', shown)
            assert share is not None
            paths[mail.name] = {"message": link, "share": urlsplit(share[1]).path}
        watched.require_quiet()
        yield Shelf(watched, person, paths)


@pytest.fixture
def quiet(shelf: Shelf) -> Watched:
    """Record one test."""
    shelf.begin()
    return shelf.watched


def require_each(shelf: Shelf, mails: Mails, look: Callable[[Mails], None]) -> None:
    """Check several mails together; after a failure check each alone to name the cause."""

    def what_happens(mails: Mails) -> str:
        shelf.begin()
        try:
            look(mails)
        except (AssertionError, Error) as failure:
            return str(failure) or repr(failure)
        return ""

    happened = what_happens(mails)
    if happened and len(mails) > 1:
        alone = {mail.name: what_happens([mail]) for mail in mails}
        named = [f"{name}: {what}" for name, what in alone.items() if what]
        happened = "\n".join(named) or f"only together: {happened}"
    assert not happened, happened


def provoke(watched: Watched) -> None:
    """Act like a reader: move over the mails, focus them by keyboard, scroll."""
    page = watched.page
    for x, y in ((300, 400), (500, 500)):
        page.mouse.move(x, y)
    page.mouse.wheel(0, 300)
    for _ in range(2):
        page.keyboard.press("Tab")
    for number in range(page.locator("iframe").count()):
        left, top = page.evaluate(REACH_FRAME, number)
        page.mouse.move(left + 20, top + 20)
        page.keyboard.press("Tab")


def require_stay(watched: Watched, address: str) -> None:
    """Fail if the page or one of its frames has navigated."""
    assert watched.page.url == watched.origin + address
    assert {urlsplit(url).netloc for url in watched.moves} <= {urlsplit(watched.origin).netloc}
    frames = [frame.url for frame in watched.page.frames[1:]]
    assert all(url in UNUSED or url.endswith(OWN_FRAMES) for url in frames), frames


@pytest.mark.parametrize("where", PAGES)
@pytest.mark.parametrize(
    "mails", [*_in_batches(WITH_HTML), *([mail] for mail in WITHOUT_HTML)], ids=_name_of
)
def test_no_script_runs_and_no_request_is_sent(shelf: Shelf, mails: Mails, where: str) -> None:
    """Viewing a hostile mail causes no script, request, navigation or console message.

    A mail without HTML is hostile in its subject, sender or text, and has its own page.
    """
    watched = shelf.watched

    def look(mails: Mails) -> None:
        path = shelf.show(mails, where)
        for closed in watched.page.locator(".attachments summary").all():
            closed.click()
        provoke(watched)
        require_stay(watched, path)
        watched.require_quiet()

    require_each(shelf, mails, look)


@HTML_TOGETHER
def test_remote_content_is_images_only(shelf: Shelf, mails: Mails) -> None:
    """With remote content, only images are requested.

    The pages of a message and of its share link have the same frame
    (`test_attack_hostile_mail.py`).
    """
    watched = shelf.watched

    def look(mails: Mails) -> None:
        path = shelf.show(mails, "share", "?view=html&remote=true")
        provoke(watched)
        require_stay(watched, path)
        watched.take_unloaded_images()
        watched.require_quiet()

    require_each(shelf, mails, look)


def test_the_list_shows_text(shelf: Shelf, quiet: Watched) -> None:
    """Hostile subjects, senders and tags in a list run no script, also when they arrive live."""
    quiet.go("/inbox?limit=500")
    quiet.page.locator("#live[data-state=open]").wait_for()
    count = quiet.page.locator("#mails li").count()
    hostile = [mail for mail in MAILS if not mail.html]
    for number, mail in enumerate(hostile):
        shelf.person.get_mail(mail.raw_message, mail.tag)
        quiet.page.locator("#mails li").nth(count + number).wait_for()
    provoke(quiet)
    quiet.require_quiet()


@HTML_TOGETHER
def test_the_sanitizer_holds_alone(shelf: Shelf, mails: Mails) -> None:
    """Without sandbox and policy, a sanitized mail on a page of the site has no effect."""
    watched = shelf.watched

    def take_policy_away(route: Route) -> None:
        response = route.fetch()
        headers = {
            name: value
            for name, value in response.headers.items()
            if name != "content-security-policy"
        }
        route.fulfill(response=response, headers=headers)

    def look(mails: Mails) -> None:
        frames = [f"<iframe src={shelf.paths[mail.name]['message']}/frame>" for mail in mails]
        body = "<!doctype html>" + "</iframe>".join(frames)
        watched.page.route("**/frame", take_policy_away)
        watched.page.route(
            "**/without-policy", lambda route: route.fulfill(body=body, content_type="text/html")
        )
        watched.go("/without-policy")
        provoke(watched)
        require_stay(watched, "/without-policy")
        watched.require_quiet()

    require_each(shelf, mails, look)


@HTML_TOGETHER
def test_the_policy_holds_alone(shelf: Shelf, mails: Mails) -> None:
    """Without the sanitizer, a mail in the frame causes no script, request or navigation."""
    watched = shelf.watched
    came = {f"{shelf.paths[mail.name]['message']}/frame": mail.html for mail in mails}

    def take_sanitizer_away(route: Route) -> None:
        html = came[urlsplit(route.request.url).path]
        route.fulfill(response=route.fetch(), body=f"<!doctype html>{html}")

    def look(mails: Mails) -> None:
        watched.page.route("**/frame", take_sanitizer_away)
        path = shelf.show(mails, "message", "?view=html")
        provoke(watched)
        assert watched.page.url == watched.origin + path
        went = {urlsplit(url)[:2] for url in watched.moves}
        # Blocked frames in a mail have the address about: or chrome-error:.
        reached = {host for scheme, host in went if scheme not in ("about", "chrome-error")}
        assert reached == {urlsplit(watched.origin).netloc}
        # The console reports what the browser blocked. A script that ran would have opened a
        # dialog or sent a request.
        assert (watched.dialogs, watched.sent_elsewhere(), watched.pages[1:]) == ([], [], [])

    require_each(shelf, mails, look)


def test_the_recording_notices_everything(shelf: Shelf, quiet: Watched) -> None:
    """Without both defences, scripts, requests and new pages of a mail are recorded."""
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
