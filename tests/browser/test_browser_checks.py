"""The checks of a mail in a real browser: beside the mail, with links, in all widths."""

import pytest
from playwright.sync_api import expect

from tests.browser.people import Person
from tests.browser.watching import Watched

MAIL = (
    b"From: Shop <shop@example.com>\r\n"
    b"Subject: Spring sale\r\n"
    b"MIME-Version: 1.0\r\n"
    b"Content-Type: text/html; charset=utf-8\r\n"
    b"\r\n"
    b"<html><head><style>\r\n"
    b".card { border-radius: 8px; box-shadow: 0 0 2px #999 }\r\n"
    b"@media (max-width: 600px) { .card { width: 100% !important } }\r\n"
    b"</style></head><body>\r\n"
    b'<h1>Spring sale</h1><h3>Shoes</h3><div class="card">\r\n'
    b'<img src="https://shop.example/a.png" width="200">\r\n'
    b'<p style="color:#aaaaaa">All shoes for half their price.</p></div>\r\n'
    b'<a href="http://127.0.0.1:9/private">Imprint</a>\r\n'
    b'<a href="https://shop.example/unsubscribe">Unsubscribe</a>\r\n'
    b"</body></html>\r\n"
)


def open_checks(watched: Watched) -> None:
    """Open the checks on the page, and wait until they are loaded."""
    page = watched.page
    page.locator("#checks > summary").click()
    expect(page.get_by_role("heading", name="HTML compatibility")).to_be_visible()


def test_checks_open_beside_their_mail(person: Person, watched: Watched) -> None:
    """A click below the mail loads compatibility, accessibility and links."""
    page = watched.page
    person.get_mail(MAIL)
    watched.go("/inbox")
    page.get_by_role("link", name="Spring sale").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Spring sale")
    open_checks(watched)
    result = page.locator("#checks-result")
    expect(result.get_by_role("row", name="box-shadow")).to_contain_text("line 2")
    expect(result).to_contain_text("too little contrast")
    expect(result).to_contain_text("does not declare its language")
    expect(result.get_by_label("Imprint")).to_be_checked()
    expect(result.get_by_label("Unsubscribe")).not_to_be_checked()
    watched.require_accessible()
    result.get_by_role("button", name="Check selected links").click()
    expect(page.locator("#checks-result [role=status]")).to_have_text(
        "Checked 1 link: 1 not checked."
    )
    expect(page.locator("#checks-result")).to_contain_text("not on the public Internet")
    watched.require_accessible()
    watched.require_quiet()


@pytest.mark.parametrize("width", [390, 768, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_of_the_checks_fits(
    person: Person, watched: Watched, width: int, scheme: str
) -> None:
    """The page of the checks fits a phone, a tablet and a desktop, in both themes."""
    page = watched.page
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size({"width": width, "height": 900})
    person.get_mail(MAIL)
    watched.go("/inbox")
    page.get_by_role("link", name="Spring sale").click()
    address = page.locator("#checks").get_attribute("data-part") or ""
    watched.go(address)
    page.get_by_text("Lines and mail programs").click()
    expect(page.get_by_text("Outlook (Windows)").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    watched.require_accessible()
    watched.require_quiet()
