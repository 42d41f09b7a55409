"""Pictures of all pages, in three widths and two themes, to be reviewed: ``make pictures``.

They are written to ``pictures/`` and named by page, theme and width.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.every_page import Filled, filled_world
from tests.browser.watching import OneBrowser

pytestmark = [
    pytest.mark.end_to_end,
    pytest.mark.pictures,
    pytest.mark.timeout(1_800),
    pytest.mark.usefixtures("logged_failures"),  # of the page of an internal error
]

PICTURES = Path(__file__).parents[2] / "pictures"
WIDTHS = (390, 1024, 1440)  # pixels
HEIGHT = 900
THEMES = ("light", "dark")
PNG = b"\x89PNG\r\n"


@pytest.fixture(scope="module")
def filled(one_browser: OneBrowser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    """Run a daemon with data."""
    with filled_world(one_browser.running(), tmp_path_factory.mktemp("pictured")) as filled:
        yield filled


@pytest.mark.parametrize(("theme", "width"), list(itertools.product(THEMES, WIDTHS)))
def test_pictures_of_pages(browser: Browser, filled: Filled, theme: str, width: int) -> None:
    """Take a picture of the whole of each page, which is not wider than the screen."""
    options = {
        "color_scheme": theme,
        "viewport": {"width": width, "height": HEIGHT},
        "reduced_motion": "reduce",
    }
    too_wide = []
    for person in dict.fromkeys(scene.person for scene in filled.scenes):
        with filled.visit(browser, person, **options) as watched:
            for scene in (one for one in filled.scenes if one.person == person):
                filled.show(watched, scene)
                picture = PICTURES / f"{scene.name}-{theme}-{width}.png"
                watched.page.screenshot(path=picture, full_page=True)
                assert picture.read_bytes().startswith(PNG)
                if watched.page.evaluate("document.documentElement.scrollWidth") > width:
                    too_wide.append(scene.name)
    assert not too_wide
