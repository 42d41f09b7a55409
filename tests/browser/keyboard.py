"""Using a page with the keyboard alone: Tab reaches an element, whose focus must be visible."""

from playwright.sync_api import Locator, Page

MOST = 250
"""Number of times that Tab is pressed before an element counts as out of reach."""

HAS_FOCUS = "one => one === document.activeElement"

SHOWS_FOCUS = """one => [null, "::after"].some(
  part => parseFloat(getComputedStyle(one, part).outlineWidth) > 0
    && getComputedStyle(one, part).outlineStyle !== "none")"""
"""Whether an element or the layer above it has an outline."""


def reach(page: Page, target: Locator) -> None:
    """Press Tab until an element has the focus, and fail if its focus cannot be seen."""
    target.wait_for()
    for _ in range(MOST):
        if target.evaluate(HAS_FOCUS):
            break
        page.keyboard.press("Tab")
    else:
        raise AssertionError(f"Tab does not reach {target}")
    assert target.evaluate(SHOWS_FOCUS), f"the focus of {target} cannot be seen"


def press(page: Page, target: Locator, key: str = "Enter") -> None:
    """Reach an element and press a key that stays on the page."""
    reach(page, target)
    page.keyboard.press(key)


def follow(page: Page, target: Locator) -> None:
    """Reach an element and open a page with Enter.

    The key is released on the new page, as `Watched.press_to_leave` explains.
    """
    reach(page, target)
    with page.expect_navigation():
        page.keyboard.down("Enter")
    page.keyboard.up("Enter")


def enter(page: Page, target: Locator, text: str) -> None:
    """Reach a field, replace its text, and submit its form."""
    reach(page, target)
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type(text)
    follow(page, target)
