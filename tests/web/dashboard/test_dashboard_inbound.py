"""Routes on their pages: create, show once, write, reply, ready-made mails, and attempts."""

import re
from html import unescape

import pytest

from mailcheck.api.urls import PAGES_WITH_FILES
from mailcheck.core.inbound import READY_MAILS, InboundFault, ReadyMail
from mailcheck.ports.probes import InboundAnswer
from mailcheck.web.dashboard.inbound.forms import FAULT_TEXTS
from mailcheck.web.dashboard.inbound.route_pages import STATE_LEVELS
from tests.fakes.scripted_receivers import ScriptedReceivers
from tests.house import House, mail, run
from tests.table import rows
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.test_dashboard_live_parts import LiveParts
from tests.web.dashboard.test_dashboard_projects import pages_of

URL = "https://app.example.com/mail"
FORM = {"to": "support@*", "format": "mailcheck", "url": URL, "speed": "60", "fault": ""}


@pytest.fixture
def receivers(house: House) -> ScriptedReceivers:
    """Run a daemon that delivers to a scripted application."""
    run(house.assembly.inbound.deliver.start())
    return house.receivers


@pytest.fixture
def owner(browser: Browser, receivers: ScriptedReceivers) -> Browser:
    """Sign up an account without a route."""
    browser.sign_up("ann")
    browser.open("/inbound")
    return browser


def create(owner: Browser, **form: str) -> str:
    """Create a route by the form, and return its path."""
    answer = owner.submit("/inbound", **{**FORM, **form})
    assert answer.status == 200, owner.words
    path = owner.find(r'href="(/p/me/inbound/routes/\w+)"')
    owner.open(path)
    return path


def message_of(owner: Browser) -> str:
    """Receive a mail of the application, and return the path of its page."""
    account = run(owner.house.assembly.accounts.keep.find("ann"))
    raw = mail("Your ticket", "What is the number?", "Support <support@app.example>")
    owner.house.receive(owner.house.address("", account), raw=raw)
    owner.open("/inbox")
    return owner.find(r'href="(/p/me/inbox/messages/[^"?]+)')


def upload(owner: Browser, path: str, files: dict[str, bytes], **form: str) -> int:
    """Submit a form with files, and return the status of the response."""
    lines = []
    for name, value in {"form-token": owner.page.form_token, **form}.items():
        lines.append(
            f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        )
    for name, data in files.items():
        head = f'--b\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n\r\n'
        lines.append(head.encode() + data + b"\r\n")
    body = b"".join([*lines, b"--b--\r\n"])
    answer = owner.send("POST", path, body, "Content-Type: multipart/form-data; boundary=b")
    if answer.status == 303:
        owner.follow(answer)
    return answer.status


def test_a_route_is_created(owner: Browser) -> None:
    """The secret is shown once. Then the route is listed, with its last mail."""
    assert "No routes yet" in owner.page.text
    owner.submit("/inbound", **FORM)
    secret = owner.find(r'id="route-secret">(whsec_[^<]+)<')
    page = owner.open("/inbound").body.decode()
    assert unescape(secret) not in page
    for words in ("support@", URL, "none yet"):
        assert words in page


def test_a_wrong_form_keeps_its_values(owner: Browser) -> None:
    """A form with an invalid URL is shown again with its values and the reason."""
    answer = owner.submit("/inbound", **{**FORM, "url": "ftp://app", "user": "shop"})
    assert answer.status == 400
    assert 'value="ftp://app"' in answer.body.decode()
    assert 'value="shop"' in answer.body.decode()
    assert 'role="alert"' in answer.body.decode()


def test_the_public_key_of_sendgrid_is_shown(owner: Browser) -> None:
    """A route in the format of SendGrid shows the key with which the application verifies."""
    path = create(owner, format="sendgrid")
    assert "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE" in owner.open(path).body.decode()


def test_a_mail_is_written(owner: Browser, receivers: ScriptedReceivers) -> None:
    """A mail from the form reaches the application, and its page shows the attempt."""
    path = create(owner)
    owner.open(f"{path}/write")
    form = {
        "author": "Ana <ana@customer.example>",
        "to": "support@app.example",
        "spf": "fail",
        "subject": "Help",
        "text": "It is broken.",
        "dkim": "pass",
        "dmarc": "none",
        "spam": "",
    }
    assert upload(owner, f"{path}/write", {"a.txt": b"hello"}, **form) == 303
    (request,) = receivers.inbound
    assert b"It is broken." in request.body
    assert b"a.txt" in request.body
    assert b'"fail"' in request.body
    for words in ("Help", "delivered", "200", "Server", "taken", "SPF fail"):
        assert words in owner.page.text
    listed = owner.read(path)
    for words in ("Help", "delivered", "200"):
        assert words in listed


def test_ready_mails_are_one_press(owner: Browser, receivers: ScriptedReceivers) -> None:
    """Each ready-made mail has a button, which sends it to the application."""
    path = create(owner)
    for name in READY_MAILS:
        assert f'name="ready" value="{name}"' in owner.page.source
    for name in set(READY_MAILS) - {ReadyMail.LARGE}:  # which is tested as a mail
        owner.submit(f"{path}/ready", ready=name)
    assert len(receivers.inbound) == len(READY_MAILS) - 1
    owner.open(path)
    assert owner.page.source.count('"badge good">delivered<') == len(READY_MAILS) - 1


def test_a_form_offers_the_faults_of_its_format(owner: Browser) -> None:
    """A route without signatures offers no fault of signatures; a new route offers all faults."""
    assert all(f'value="{fault}"' in owner.page.source for fault in InboundFault)
    path = create(owner, format="cloudflare")
    for page in (path, f"{path}/write"):
        source = owner.open(page).body.decode()
        assert 'value="twice"' in source
        assert 'value="wrong-signature"' not in source


def test_a_new_mail_is_written_to_the_author_of_a_message(owner: Browser) -> None:
    """Beside the reply, a link leads to a new mail between the same people."""
    path = create(owner)
    owner.open(f"{message_of(owner)}/reply")
    source = owner.open(unescape(owner.find(rf'href="({path}/write\?[^"]+)"'))).body.decode()
    assert 'name="to" value="support@app.example"' in source
    assert 'name="author" value="dev-' in source


PART = b'--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n1\r\n'


@rows(
    ("multipart/form-data", PART + b"--b--\r\n", 400),
    ("multipart/form-data; boundary=b", PART * 2_001 + b"--b--\r\n", 400),
    ("multipart/form-data; boundary=b", PART, 400),
    ("multipart/form-data; boundary=b", b"\xff" * 100, 400),
    ("multipart/form-data; boundary=b", PART + b"--b--\r\n", 403),
    ("application/x-www-form-urlencoded", b"text=" + b"x" * 70_000, 413),
    ("application/json", b"{}", 415),
)
def test_malformed_forms_are_rejected(
    owner: Browser, receivers: ScriptedReceivers, kind: str, body: bytes, status: int
) -> None:
    """A malformed or too large form, and one without a token, sends nothing."""
    path = create(owner)
    answer = owner.send("POST", f"{path}/write", body, f"Content-Type: {kind}")
    assert answer.status == status
    assert receivers.inbound == []


def test_names_of_files_add_no_header_fields(owner: Browser, receivers: ScriptedReceivers) -> None:
    """The name of an uploaded file is a name, whatever it contains."""
    path = create(owner, format="cloudflare")
    owner.open(f"{path}/write")
    form = {"author": "a@b.example", "to": "c@d.example", "text": "x"}
    name = "=?utf-8?q?a=0D=0ABcc=3A_x=40y=2Eexample?= ../../etc/passwd"
    assert upload(owner, f"{path}/write", {name: b"1"}, **form) == 303
    body = receivers.inbound[0].body
    assert not re.search(rb"^Bcc", body, re.MULTILINE)


def test_a_message_is_answered(owner: Browser, receivers: ScriptedReceivers) -> None:
    """A reply to a message quotes it, is in its thread, and goes to its author."""
    create(owner)
    message = message_of(owner)
    assert f'href="{message}/reply"' in owner.open(message).body.decode()
    owner.open(f"{message}/reply")
    form = {
        **owner.page.fields,
        "subject": "Re: Your ticket",
        "text": "It is 7.",
        "author": "",
        "to": "",
        "program": "apple",
        "place": "above",
    }
    form.pop("form-token")
    assert upload(owner, f"{message}/reply", {}, **form) == 303
    body = receivers.inbound[0].body.decode()
    assert "It is 7." in body
    assert "Support <support@app.example> wrote:" in body
    assert "support@app.example" in owner.page.text


def test_a_message_is_sent_again(owner: Browser, receivers: ScriptedReceivers) -> None:
    """A stored message itself is sent, and so is a ready-made mail about it."""
    path = create(owner)
    message = message_of(owner)
    owner.open(f"{message}/reply")
    route_id = path.rpartition("/")[2]
    owner.follow(owner.submit(f"{message}/again", route_id=route_id))
    owner.follow(owner.submit(f"{message}/ready", route_id=route_id, ready="bounce-hard"))
    again, bounce = (request.body.decode() for request in receivers.inbound)
    assert "What is the number?" in again
    assert "Address not found" in bounce


def test_without_a_route_nothing_is_answered(owner: Browser) -> None:
    """Without a route, the page of answers leads to the page that creates one."""
    page = owner.open(f"{message_of(owner)}/reply").body.decode()
    assert 'href="/p/me/inbound"' in page
    assert "<textarea" not in page


def test_attempts_are_shown(owner: Browser, receivers: ScriptedReceivers) -> None:
    """Each attempt is shown with its status, and the answer as text that is not a page."""
    path = create(owner)
    receivers.inbound_answers = [
        InboundAnswer(503, headers=(("Retry-After", "9"),), body=b"<b>busy</b> \xff")
    ]
    owner.follow(owner.submit(f"{path}/ready", ready="empty"))
    page = owner.page.source
    assert "&lt;b&gt;busy&lt;/b&gt; \ufffd" in page
    for words in ("Attempt 1", "503", "Retry-After", "retrying", "Next attempt"):
        assert words in owner.page.text
    owner.follow(owner.submit(f"{owner_path(owner)}/again"))
    assert len(receivers.inbound) == 2


def test_an_attempt_is_announced_to_open_pages(
    owner: Browser, receivers: ScriptedReceivers
) -> None:
    """The parts of open pages are updated after each attempt."""
    path = create(owner)
    stream = LiveParts(owner)
    before = stream.changes()
    owner.submit(f"{path}/ready", ready="empty")
    assert len(receivers.inbound) == 1
    assert stream.changes() > before
    stream.connection.hang_up()


def owner_path(owner: Browser) -> str:
    """Return the path of the mail on the last page."""
    return owner.find(r'action="(/p/me/inbound/routes/\w+/mails/[^"/]+)/again"')


def test_a_route_is_changed_and_deleted(owner: Browser) -> None:
    """The settings are changed without the secret; a deleted route is gone."""
    path = create(owner)
    owner.follow(owner.submit(path, **{**FORM, "to": "in@*", "fault": "twice"}))
    assert "Deliver it twice" in owner.page.text
    assert "in@" in owner.page.text
    owner.follow(owner.submit(f"{path}/delete"))
    assert "No routes yet" in owner.page.text
    assert owner.open(path).status == 404


def test_every_fault_and_state_has_words() -> None:
    """Each fault has a text in the forms, and each state a level."""
    assert set(FAULT_TEXTS) == set(InboundFault)
    assert set(STATE_LEVELS) == {"waiting", "retrying", "delivered", "failed", "stopped"}


def test_pages_with_files_take_large_bodies(house: House) -> None:
    """The paths with larger bodies are those of the pages whose forms have files."""
    found = {re.sub("<[^>]*>", "*", page.path) for page in pages_of(house) if page.takes_files}
    assert found == set(PAGES_WITH_FILES)
