"""All pages in a real browser: accessibility in both themes, width, title, and size of requests."""

from collections.abc import Iterator, Mapping
from typing import Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Response

from tests.browser.conftest import one_browser
from tests.browser.every_page import PEOPLE, Filled, Scene, filled_world
from tests.browser.watching import OneBrowser, Watched

__all__ = ["one_browser"]

pytestmark = pytest.mark.end_to_end

WIDTHS = (320, 375, 700, 768, 825, 1280)  # pixels
MOST_REQUESTS = 10
MOST_BYTES = 80_000
"""Maximum number of bytes that a first visit of a page receives, compressed."""

RULES: Mapping[Literal["light", "dark"], tuple[str, ...]] = {
    "light": (),
    "dark": ("color-contrast",),
}
"""The rules of axe for each theme: all, and those that a change of the colours can break."""

OBJECT = "h1#mail-subject, .result-name"
"""Elements with the name of the object that a page is about."""

DOCUMENTATION = "docs"
"""The documentation, if it is built. Its theme determines the landmarks and the size of pages."""

ERROR = "#error"
"""Content of a page of an error. Such pages have the same title at different addresses."""


@pytest.fixture(scope="module")
def filled(one_browser: OneBrowser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    """Run a daemon whose pages have data."""
    with filled_world(one_browser.running(), tmp_path_factory.mktemp("every-page")) as filled:
        yield filled


def faults_of(filled: Filled, watched: Watched, scene: Scene) -> list[str]:
    """Return what is wrong with a page."""
    page, faults = watched.page, []
    received: list[Response] = []

    def note(response: Response) -> None:
        received.append(response)

    page.set_viewport_size({"width": 1280, "height": 900})
    page.on("response", note)
    filled.show(watched, scene)
    page.remove_listener("response", note)
    if scene.act is None:
        # A stream stays open, and is opened again if a busy machine breaks it.
        whole = [
            one for one in received if "event-stream" not in one.headers.get("content-type", "")
        ]
        sizes = [one.request.sizes()["responseBodySize"] for one in whole if one.request.timing]
        if len(whole) > MOST_REQUESTS:
            faults.append(f"sends {len(whole)} requests")
        if sum(sizes) > MOST_BYTES:
            faults.append(f"receives {sum(sizes)} bytes")
    for theme, rules in RULES.items():
        # Without motion, so that colours are not judged in the middle of a transition.
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        try:
            watched.require_accessible(*rules)
        except AssertionError as failure:
            faults.append(f"in the {theme} theme: {failure}")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        excess = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if excess > 0:
            faults.append(f"is {excess} pixels wider than {width}")
    if scene.act is None:
        title = page.title()
        faults += [
            f"has the title {title!r} without {name!r}"
            for name in page.locator(OBJECT).all_inner_texts()
            if name.strip() not in title
        ]
    faults += [f"asks {one}" for one in watched.elsewhere]
    watched.forget()
    return [f"{scene.name} ({scene.path}) {one}" for one in faults]


@pytest.mark.timeout(1_800)
@pytest.mark.usefixtures("logged_failures")  # of the page of an internal error
@pytest.mark.parametrize("person", PEOPLE)
def test_every_page(one_browser: OneBrowser, filled: Filled, person: str) -> None:
    """No page has accessibility issues, is too wide, loads long, or has another one's title."""
    faults: list[str] = []
    paths: dict[str, str] = {}  # by title
    own = [one for one in filled.scenes if one.person == person and one.name != DOCUMENTATION]
    for scene in own:
        # The browser is lent again for each page, so that a busy machine has time for all.
        with one_browser.lent() as browser, filled.visit(browser, person) as watched:
            faults += faults_of(filled, watched, scene)
            title, path = watched.page.title(), urlsplit(watched.page.url).path
            is_comparable = scene.render is None and not watched.page.locator(ERROR).count()
            if is_comparable and paths.setdefault(title, path) != path:
                faults.append(f"{path} has the title {title!r} of {paths[title]}")
    assert not faults, "\n".join(faults)
