"""Signing up, in and out: sessions, and the responses without one."""

from mailcheck.core.instants import DAY, MINUTE, SECOND
from mailcheck.operations.accounts.passwords import ScryptCost, write_hash
from mailcheck.operations.accounts.sign_in import IDLE_LIFE, WHOLE_LIFE
from mailcheck.store.accounts.sign_in_store import PasswordStore
from tests.engines.deliveries import noted
from tests.house import CHEAP_HASH, House, result_of, run
from tests.table import rows
from tests.web.dashboard.browser import Browser

WRONG = "No account has this name and password."


def session(browser: Browser) -> str:
    """Return the value of the session cookie."""
    return browser.cookies["mailcheck-session"]


def test_signing_up(browser: Browser) -> None:
    """A new account is signed in at once and has its own inbox."""
    overview = browser.sign_up_by_form("ann")
    assert overview.status == 200
    assert "Welcome! Your account and your inbox are ready." in browser.page.text
    account = run(browser.house.assembly.accounts.keep.find("ann"))
    assert f"{account.mailbox_name}@mailcheck.example" in browser.page.text
    assert not account.is_operator


def test_signing_in_and_out(house: House, ann: Browser) -> None:
    """Name and password open a session; signing out ends it in the browser and the store."""
    other = Browser(house, "192.0.2.11")
    assert other.follow(other.sign_in("ann")).status == 200
    assert other.is_signed_in
    stolen = dict(other.cookies)
    answer = other.submit("/sign-out")
    assert other.follow(answer).status == 200
    assert "You have signed out." in other.page.text
    assert "mailcheck-session" not in other.cookies
    other.cookies = stolen
    assert not other.is_signed_in
    assert ann.is_signed_in


@rows(
    ("ann", "wrong horse!"),
    ("ann", ""),
    ("ann", "correct horse "),
    ("ann", "Correct horse"),
    ("bob", "correct horse"),
    ("Ann", "correct horse"),
    ("", ""),
    ("first", ""),
    ("first", "correct horse"),
    ("ann", "x" * 400),
    ("a" * 400, "correct horse"),
)
def test_wrong_name_and_wrong_password_look_the_same(
    ann: Browser, name: str, password: str
) -> None:
    """A wrong name and a wrong password get the same response and no session."""
    stranger = Browser(ann.house, "192.0.2.99")
    answer = stranger.sign_in(name, password)
    assert answer.status == 403
    assert WRONG in stranger.page.text
    assert "mailcheck-session" not in stranger.cookies


def test_a_name_that_exists(house: House, ann: Browser) -> None:
    """A name that exists is rejected, and the form keeps it."""
    other = Browser(house, "192.0.2.11")
    other.open("/sign-up")
    answer = other.submit("/sign-up", name=" ann ", password="another horse")
    assert answer.status == 409
    assert "An account named 'ann' already exists." in other.page.text
    assert not other.is_signed_in


@rows(
    ("", "correct horse", "1 to 64 characters"),
    ("x" * 65, "correct horse", "1 to 64 characters"),
    ("a\tb", "correct horse", "invisible characters"),
    ("a\u202eb", "correct horse", "invisible characters"),
    ("ann", "short", "at least 10"),
    ("ann", "x" * 201, "at most 200"),
    ("ann", "aaaaaaaaaaaa", "too easy to guess"),
    ("ann.of.the.shop", "Ann.of.the.Shop", "too easy to guess"),
)
def test_invalid_names_and_passwords(
    browser: Browser, name: str, password: str, problem: str
) -> None:
    """Names with invisible characters and weak passwords are rejected with the reason."""
    browser.open("/sign-up")
    answer = browser.submit("/sign-up", name=name, password=password)
    assert answer.status == 400
    assert problem in browser.page.text
    assert len(run(browser.house.assembly.accounts.keep.accounts())) == 1


def test_a_session_is_always_new(house: House, ann: Browser) -> None:
    """A session planted by an attacker is not used after signing in."""
    attacker = Browser(house, "192.0.2.66")
    attacker.sign_up_by_form("mallory", "evil enough horse")
    planted = session(attacker)
    victim = Browser(house, "192.0.2.11")
    victim.cookies["mailcheck-session"] = planted
    victim.open("/account")
    victim.follow(victim.submit("/sign-in", name="ann", password="correct horse"))
    assert session(victim) != planted
    assert victim.open("/account").status == 200
    assert "ann" in victim.page.text
    made_up = Browser(house, "192.0.2.12")
    made_up.cookies["mailcheck-session"] = "a" * 32
    made_up.sign_in("ann")
    assert session(made_up) != "a" * 32
    assert not attacker.is_signed_in, "signing in ends the session that the browser had"


def test_sessions_that_are_not_used_end(house: House, ann: Browser) -> None:
    """A session ends a week after its last use, and 30 days after it began at the latest."""
    house.pass_time((IDLE_LIFE - MINUTE) / SECOND)
    assert ann.is_signed_in
    house.pass_time((IDLE_LIFE - 10 * MINUTE) / SECOND)
    assert ann.is_signed_in
    house.pass_time((IDLE_LIFE + MINUTE) / SECOND)
    assert not ann.is_signed_in


def test_sessions_end_however_much_they_are_used(house: House, ann: Browser) -> None:
    """A session that is used every day ends after 30 days."""
    for _ in range(WHOLE_LIFE // DAY - 1):
        house.pass_time(DAY / SECOND)
        assert ann.is_signed_in
    house.pass_time(DAY / SECOND)
    assert not ann.is_signed_in


def test_changing_the_password(house: House, ann: Browser) -> None:
    """A new password ends all other sessions, and the old password no longer works."""
    other = Browser(house, "192.0.2.11")
    other.sign_in("ann")
    assert other.is_signed_in
    before = session(ann)
    ann.open("/account")
    new = "battery staple"
    answer = ann.submit("/account/password", old="correct horse", new=new, again=new)
    assert ann.follow(answer).status == 200
    assert "Your password has been changed." in ann.page.text
    assert session(ann) != before
    assert not other.is_signed_in
    assert other.sign_in("ann", "correct horse").status == 403
    assert other.sign_in("ann", new).status == 303


@rows(
    ("wrong horse!", "battery staple", "battery staple", 403, "The current password is wrong"),
    (
        "correct horse",
        "battery staple",
        "battery stable",
        400,
        "passwords are different",
    ),
    ("correct horse", "short", "short", 400, "at least 10"),
    ("", "", "", 400, "at least 10"),
)
def test_a_password_that_is_not_changed(
    ann: Browser, old: str, new: str, again: str, status: int, problem: str
) -> None:
    """The problem is shown, and the old password and the session stay valid."""
    answer = ann.submit("/account/password", old=old, new=new, again=again)
    assert answer.status == status
    assert problem in ann.page.text
    assert ann.is_signed_in
    assert Browser(ann.house).sign_in("ann").status == 303


def test_the_form_redirects_a_signed_in_visitor(ann: Browser) -> None:
    """The sign-in page redirects a signed-in visitor to the requested page."""
    assert ann.open("/sign-in?next=/keys").headers["location"] == "/p/me/keys"


def test_the_requested_page_after_signing_in(ann: Browser) -> None:
    """After signing in, the visitor gets the requested page with its parameters."""
    other = Browser(ann.house, "192.0.2.11")
    answer = other.open("/keys?done=key-revoked&x=%2F")
    assert answer.status == 303
    form = other.follow(answer).body.decode()
    assert 'name="next" value="/p/me/keys?done=key-revoked&amp;x=%2F"' in form
    wanted = "/p/me/keys?done=key-revoked&x=%2F"
    answer = other.submit("/sign-in", name="ann", password="correct horse", next=wanted)
    assert answer.headers["location"] == wanted


def test_passwords_are_hashed_again_at_a_new_cost(browser: Browser) -> None:
    """A password hashed at another cost is hashed again at the next sign-in."""
    assembly = browser.house.assembly
    account = run(assembly.accounts.keep.add("ann"))
    store = PasswordStore(assembly.runtime.engine)
    old = write_hash("correct horse", b"salt", ScryptCost(11, 8, 1))
    result_of(store.set_password(account.id, old, noted(assembly.runtime.now())))
    for _ in range(2):
        assert Browser(browser.house).sign_in("ann").status == 303
        kept = result_of(store.find_password("ann")).password_hash
        assert kept.startswith(f"$scrypt$ln={CHEAP_HASH},r=8,p=3$")
