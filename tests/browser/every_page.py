"""Every page in the states worth looking at: a daemon with data, and the list of its pages.

with filled_world(browser, folder) as filled:
    for scene in filled.scenes:
        with filled.visit(browser, scene.person) as watched:
            filled.show(watched, scene)
"""

import smtplib
import subprocess
import sys
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page

from mailcheck.daemon.first_start import ACCOUNT_NAME
from tests.browser.people import Person, make_account
from tests.browser.still_pages import STILL_PAGES
from tests.browser.tool_world import ToolWorld, running_tool_world
from tests.browser.watching import Watched, watched_page
from tests.corpus.feedback_mails import FIELDS, feedback_mail
from tests.corpus.report_files import document, gzipped, report_mail
from tests.fakes.report_senders import (
    DOMAIN,
    RECEIVERS,
    ask_for_reports,
    reports_records,
    signed_report,
    signer_of,
)
from tests.house import mail
from tests.servers.daemon import HOST
from tests.servers.http_stub import QuietHandler, serving

STRANGER, NEW, ANN, OWNER, READER, OPERATOR = (
    *("stranger", "new", "ann", "owner"),
    *("reader", "operator"),
)
"""A visitor, an account without data, one with data in all areas, an owner and a reader of a
project, and the operator."""

PEOPLE = (STRANGER, NEW, ANN, OWNER, READER, OPERATOR)

Act = Callable[[Page], None]

PICTURE = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

HTML = """<html lang="en"><body style="font-family:sans-serif"><h1>Confirm your address</h1>
<p>Your code is <b>482913</b>, valid for 10 minutes.</p>
<p><a href="https://shop.test/confirm?t=7f3a">Confirm your address</a></p>
<img src="https://images.test/logo.png" width="300" height="60" alt="Shop">
<p><a href="https://shop.test/unsubscribe">Unsubscribe</a></p></body></html>"""

POOR = (
    b"From: Ann Example <ann@poor.test>\r\nTo: you@mailcheck.example\r\nSubject: Your invoice\r\n"
    b"Date: Sun, 22 Nov 2026 00:00:00 +0000\r\nMessage-ID: <1.invoice@poor.test>\r\n"
    b"MIME-Version: 1.0\r\nContent-Type: text/html\r\n\r\n<h1>Your invoice</h1><p>Thank you.</p>"
)
GOOD = POOR.replace(b"poor.test", b"good.test").replace(
    b"text/html\r\n\r\n<h1>Your invoice</h1><p>Thank you.</p>", b"text/plain\r\n\r\nHello."
)
BETTER = POOR.replace(b"text/html", b"text/plain")

INVITATION = (
    b"From: Carol <carol@example.com>\r\nSubject: Planning of the spring release\r\n"
    b"Content-Type: text/calendar; method=REQUEST\r\n\r\n"
    b"BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nBEGIN:VEVENT\r\nDTSTART:20261201T100000Z\r\n"
    b"DTEND:20261201T113000Z\r\nLOCATION:Room 4\r\nORGANIZER;CN=Carol:mailto:carol@example.com\r\n"
    b"ATTENDEE;CN=Dan;PARTSTAT=ACCEPTED:mailto:dan@example.com\r\n"
    b"SUMMARY:Planning\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
)

BOUNCE = (
    b"From: Mail Delivery System <MAILER-DAEMON@mx.example.net>\r\n"
    b"Subject: Undelivered Mail Returned to Sender\r\nMIME-Version: 1.0\r\n"
    b"Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n"
    b"--b\r\n\r\nThis is the mail system at host mx.example.net.\r\n"
    b"--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example.net\r\n"
    b"\r\nFinal-Recipient: rfc822; nobody@shop.test\r\nAction: failed\r\nStatus: 5.1.1\r\n"
    b"Remote-MTA: dns; mail.shop.test\r\n"
    b"Diagnostic-Code: smtp; 550 5.1.1 <nobody@shop.test>: Recipient address rejected\r\n"
    b"--b\r\nContent-Type: text/rfc822-headers\r\n\r\nSubject: Your order 4711\r\n"
    b"Date: Sun, 22 Nov 2026 00:00:00 +0000\r\nMessage-ID: <4711@example.com>\r\n--b--\r\n"
)

RIGHT_TO_LEFT = mail(
    "\u0645\u0631\u062d\u0628\u0627: \u0631\u0645\u0632 482913",
    "\u0631\u0645\u0632\u0643 \u0647\u0648 482913",
    "\u0645\u062a\u062c\u0631 <shop@example.com>",
)

LONG = mail(
    "Re: " + "A subject that goes on and on, as those of invoices of large companies do, " * 5,
    "https://shop.test/" + "a" * 300 + "\r\n\r\n" + "Unbroken" * 60,
    f"{'Name of a very long department ' * 5} <{'a' * 60}@{'sub.' * 20}example.com>",
)


def with_files() -> bytes:
    """Return a mail with HTML, text and files."""
    made = EmailMessage()
    made["From"], made["Subject"] = "Shop <shop@example.com>", "Confirm your address"
    made["Cc"] = ", ".join(f"person-{number}@example.com" for number in range(9))
    made.set_content("Your code is 482913: https://shop.test/confirm?t=7f3a\n")
    made.add_alternative(HTML, subtype="html")
    made.add_attachment(PICTURE, "image", "png", filename="logo.png")
    made.add_attachment("a,b\n1,2\n", subtype="csv", filename="Orders of November 2026.csv")
    made.add_attachment(b"%PDF-1.4", "application", "pdf", filename="invoice.pdf")
    return made.as_bytes(policy=SMTP)


def with_many_files() -> bytes:
    """Return a mail with more files than a list shows well."""
    made = EmailMessage()
    made["From"], made["Subject"] = "Shop <shop@example.com>", "Photos and tables"
    made.set_content("The files of this week.\n")
    for number in range(2):
        made.add_attachment(PICTURE, "image", "png", filename=f"photo-{number}.png")
    for number in range(6):
        made.add_attachment("a,b\n1,2\n", subtype="csv", filename=f"Orders of day {number}.csv")
    return made.as_bytes(policy=SMTP)


@dataclass(frozen=True, slots=True)
class Scene:
    """A page in a state: who sees it, its path, what is done on it, and what must be there then.

    ``render`` returns the page, if the daemon does not show this state.
    """

    name: str
    path: str
    person: str = ANN
    shows: str = "h1"
    act: Act | None = None
    render: Callable[[], bytes] | None = None


@dataclass
class Filled:
    """A daemon with data, the stored sessions of its people, and its pages.

    ``application`` is the URL of an application that receives mail.
    """

    world: ToolWorld
    application: str
    sessions: dict[str, Any] = field(default_factory=dict)
    scenes: list[Scene] = field(default_factory=list)
    invitations: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def visit(self, browser: Browser, person: str, **options: Any) -> Iterator[Watched]:
        """Open a page as a person."""
        state = self.sessions.get(person)
        port = self.world.daemon.http_port
        with watched_page(browser, port, storage_state=state, **options) as watched:
            yield watched

    def show(self, watched: Watched, scene: Scene) -> None:
        """Open a scene."""
        if scene.render is not None:
            body = scene.render()
            watched.page.route(
                f"**{scene.path}",
                lambda route: route.fulfill(body=body, content_type="text/html; charset=utf-8"),
            )
        watched.go(scene.path)
        if scene.act is not None:
            scene.act(watched.page)
        watched.page.locator(scene.shows).first.wait_for()


class Application(QuietHandler):
    """An application that takes most mails, and is busy or fails at other paths."""

    def do_POST(self) -> None:
        """Answer a mail."""
        self.rfile.read(int(self.headers["Content-Length"]))
        status = 503 if self.path == "/busy" else 200
        body = b'{"error": "the queue is full"}' if status == 503 else b'{"ticket": 7}'
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def filled_world(browser: Browser, folder: Path) -> Iterator[Filled]:
    """Run the daemon, and fill it."""
    allowed = [f"{ACCOUNT_NAME}={HOST}/32"]
    with (
        running_tool_world(folder, reports_records(), webhooks_allow=allowed) as world,
        serving(Application) as application,
    ):
        filled = Filled(world, application)
        _fill_strangers(filled)
        for name, fill in _FILLS.items():
            with filled.visit(browser, name) as watched:
                fill(filled, watched)
                filled.sessions[name] = watched.context.storage_state()
        yield filled


def _fill_strangers(filled: Filled) -> None:
    def fail_to_sign_in(page: Page) -> None:
        page.get_by_label("Name", exact=True).fill("ann")
        page.get_by_label("Password").fill("a wrong password")
        page.get_by_role("button", name="Sign in").click()

    def check(page: Page) -> None:
        page.get_by_label("Check a domain").fill("poor.test")
        page.get_by_role("button", name="Check").click()

    filled.scenes += [
        Scene("welcome", "/", STRANGER),
        Scene("welcome-checked", "/", STRANGER, ".score-card", check),
        *(
            Scene(name, f"/still/{name}", STRANGER, render=render)
            for name, render in STILL_PAGES.items()
        ),
        Scene("sign-in", "/sign-in", STRANGER),
        Scene("sign-in-failed", "/sign-in", STRANGER, "[role=alert]", fail_to_sign_in),
        Scene("sign-in-link", "/sign-in/link?link=none", STRANGER),
        Scene("sign-up", "/sign-up", STRANGER),
        Scene("api", "/api", STRANGER),
        Scene("api-group", "/api/inbox", STRANGER),
        Scene("api-types", "/api/types", STRANGER),
        Scene("docs", "/docs/", STRANGER),
        Scene("docs-missing", "/docs/no-page", STRANGER),
        Scene("missing", "/no-such-page", STRANGER),
        Scene("share-revoked", "/share/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", STRANGER),
    ]


def _fill_new(filled: Filled, watched: Watched) -> None:
    make_account(watched, filled.world.daemon)
    filled.scenes += [
        Scene(f"empty-{urlsplit(path).path.strip('/').replace('/', '-') or 'overview'}", path, NEW)
        for path in (
            *("/", "/inbox", "/tests", "/domains", "/webhooks", "/connect", "/keys", "/account"),
            "/inbound",
            "/heartbeats",
            *("/account/activity", "/projects", "/reports", "/digest", "/traffic", "/no-such-page"),
            *("/account/people", "/join?invitation=none", "/authorize?client_id=none"),
        )
    ]


def _fill_ann(filled: Filled, watched: Watched) -> None:
    _fill_inbox(filled, watched, make_account(watched, filled.world.daemon))
    _fill_tests(filled, watched)
    _fill_domains(filled, watched)
    _fill_heartbeats(filled, watched)
    _fill_reports(filled, watched)
    _fill_programs(filled, watched)
    filled.scenes += [
        Scene("overview", "/"),
        Scene("connect", "/connect"),
        Scene("account", "/account"),
        Scene("activity", "/account/activity"),
    ]


def _fill_inbox(filled: Filled, watched: Watched, person: Person) -> None:
    page = watched.page
    for number in range(60):
        person.get_mail(
            mail(f"Order {40_000 + number} is on its way", "It arrives soon."), "orders"
        )
    for name, raw, tag in (
        ("long", LONG, "a-long-tag-of-a-nightly-run-0123456789"),
        ("rtl", RIGHT_TO_LEFT, "arabic"),
        ("invitation", INVITATION, ""),
        ("bounce", BOUNCE, "bounces"),
        ("many-files", with_many_files(), "files"),
        ("message", with_files(), "signup"),
    ):
        person.get_mail(raw, tag)
        watched.go("/inbox")
        path = page.locator("#mails a").first.get_attribute("href") or ""
        filled.scenes.append(Scene(name, path, shows="#mail-subject"))
    message = path
    watched.go(message)
    shared = urlsplit(page.locator("#share-link").get_attribute("href") or "").path

    def open_menus(page: Page) -> None:
        for one in page.locator("main details").all():
            one.evaluate("one => one.open = true")
        page.locator("#checks-result").wait_for()

    def select(page: Page) -> None:
        page.locator("#mails input").nth(0).check()
        page.locator("#mails input").nth(1).check()

    def delete(page: Page) -> None:
        page.locator("#mails input").last.check()
        page.get_by_role("button", name="Delete selected").click()

    filled.scenes += [
        Scene("inbox", "/inbox"),
        Scene("inbox-selected", "/inbox", shows="#selected", act=select),
        Scene("inbox-deleted", "/inbox?q=is:unread", shows="#toast", act=delete),
        Scene("inbox-tag", "/inbox?tag=orders&limit=5"),
        Scene("inbox-last-page", "/inbox?page=99"),
        Scene("inbox-no-match", "/inbox?q=no-such-word"),
        Scene("inbox-wrong-search", "/inbox?q=larger:x"),
        *(
            Scene(f"message-{view}", f"{message}?view={view}", shows="#mail-subject")
            for view in ("text", "markup", "headers", "source")
        ),
        Scene("message-remote", f"{message}?remote=true", shows="#mail-subject"),
        Scene("message-open", message, shows="#mail-subject", act=open_menus),
        Scene("message-checks", f"{message}/checks"),
        Scene("message-missing", "/inbox/messages/01a1fc41-0219-76dd-ac7e-95beebac7c40"),
        Scene("shared-message", shared, STRANGER),
    ]


def _fill_tests(filled: Filled, watched: Watched) -> None:
    page = watched.page
    paths = []
    for name, raw in (("better", BETTER), ("good", GOOD), ("poor", POOR)):
        watched.go("/tests")
        page.get_by_role("button", name="Create test address").click()
        filled.world.send(page.locator("#address").inner_text(), raw)
        page.locator("#verdict-title").wait_for()
        paths.append(urlsplit(page.url).path)
        filled.scenes.append(Scene(f"report-{name}", paths[-1], shows="#verdict-title"))
    changes = page.locator(".compared a").first.get_attribute("href") or ""
    shared = urlsplit(page.locator("#share-link").get_attribute("href") or "").path
    watched.go("/tests")
    page.get_by_role("button", name="Create test address").click()
    page.locator("#address").wait_for()
    waiting = urlsplit(page.url).path

    def open_all(page: Page) -> None:
        for one in page.locator("main details").all():
            one.evaluate("one => one.open = true")
        for one in page.locator("main details[data-part-id]").all():
            page.locator(f"#{one.get_attribute('data-part-id')}").wait_for()

    def calculate(page: Page) -> None:
        page.get_by_label("Value").first.fill("v=DMARC1; p=reject")
        page.get_by_role("button", name="Calculate the score").click()

    filled.scenes += [
        Scene("tests", "/tests"),
        Scene("test-waiting", waiting, shows="#address"),
        Scene("report-open", paths[-1], shows="#verdict-title", act=open_all),
        Scene("changes", changes, shows=".versus"),
        Scene("preflight", f"{paths[-1]}/preflight"),
        Scene("preflight-result", f"{paths[-1]}/preflight", shows=".versus", act=calculate),
        Scene("shared-report", shared, STRANGER, "#verdict-title"),
    ]


def _fill_domains(filled: Filled, watched: Watched) -> None:
    page = watched.page
    for domain in ("good.test", "poor.test", "listed.test"):
        watched.go(f"/domains/{domain}")
        page.locator(".score-card").wait_for()
        page.get_by_role("switch").click()
        page.locator("[role=switch][aria-checked=true]").wait_for()
    filled.scenes += [
        Scene("domains", "/domains"),
        Scene("domains-checked", "/domains?check=hostile.test", shows="#checked .score-of"),
        Scene("domain-fix", "/domains/poor.test", shows=".score-card"),
        Scene("domain-good", "/domains/good.test", shows=".score-card"),
        Scene("domain-checks", "/domains/poor.test/checks", shows="#known-title"),
        Scene("domain-good-checks", "/domains/good.test/checks", shows="#known-title"),
        Scene("domain-blocklists", "/domains/listed.test/blocklists", shows=".total"),
        Scene("domain-no-reports", "/domains/poor.test/reports"),
        Scene("domain-history", "/domains/poor.test/history", shows="#settings-title"),
        Scene("domain-unwatched", "/domains/hostile.test/history", shows="h1"),
        Scene("domain-wrong", "/domains/no..name"),
        Scene("address-blocklists", "/domains/192.0.2.1/blocklists", shows=".total"),
    ]


def _fill_heartbeats(filled: Filled, watched: Watched) -> None:
    page, daemon = watched.page, filled.world.daemon
    watched.go("/heartbeats")
    page.get_by_label("Name", exact=True).fill("backup")
    page.get_by_label("Time of day").fill("")
    page.get_by_label("Or every ... minutes").fill("60")
    page.get_by_role("button", name="Create heartbeat").click()
    address = page.locator("#address").inner_text()
    with smtplib.SMTP(HOST, daemon.smtp_port, timeout=60) as smtp:
        smtp.sendmail("ann@good.test", [address], GOOD)
    filled.scenes += [
        Scene("heartbeats", "/heartbeats"),
        Scene("heartbeat", "/heartbeats/backup", shows="#settings-title"),
        Scene("heartbeat-missing", "/heartbeats/none"),
    ]


def _fill_reports(filled: Filled, watched: Watched) -> None:
    page, world = watched.page, filled.world
    watched.go("/reports")
    address = page.locator("main").inner_text().partition("DMARC reports go to ")[2]
    address = address.partition(",")[0]
    ask_for_reports(world.zone, address)
    world.publish()
    complaint = feedback_mail(
        FIELDS.replace("auth-failure", "abuse").replace("203.0.113.66", "198.51.100.7")
    )
    with smtplib.SMTP(HOST, world.daemon.smtp_port) as client:
        for name in RECEIVERS:
            client.sendmail("", [address], signed_report(name, address))
        google = signer_of("google.com")
        client.sendmail("", [address.replace("dmarc-", "fbl-")], google.sign(complaint))
        client.sendmail("", [address.replace("dmarc-", "ruf-")], google.sign(feedback_mail()))
        tls = report_mail(
            gzipped(document("google.json")),
            "application/tlsrpt+gzip",
            "google.json.gz",
            author="noreply-smtp-tls-reporting@google.com",
        )
        client.sendmail("", [address.replace("dmarc-", "tls-")], google.sign(tls))
    counted = page.get_by_text("processed", exact=True)
    watched.go_until("/reports", lambda: counted.count() > len(RECEIVERS))
    filled.scenes += [
        Scene("reports", "/reports"),
        Scene("reports-tls", "/reports?kind=tls"),
        Scene("reports-failures", "/reports?kind=failure"),
        Scene("domain-reports", f"/domains/{DOMAIN}/reports"),
        Scene("domain-plan", f"/domains/{DOMAIN}/plan"),
    ]


def _fill_programs(filled: Filled, watched: Watched) -> None:
    page = watched.page

    def create_key(page: Page) -> None:
        name = "a rather long name of a key, for a program of ours"
        page.get_by_label("Name", exact=True).fill(name)
        page.get_by_role("button", name="Create key").click()

    def create_webhook(page: Page) -> None:
        page.get_by_label("URL", exact=True).fill("https://ci.example.com/" + "mail/" * 30)
        page.get_by_label("Only mail with this tag").fill("signup")
        page.get_by_role("button", name="Create webhook").click()

    def invite(page: Page) -> None:
        page.get_by_role("button", name="Create invitation link").click()

    watched.go("/keys")
    create_key(page)
    page.locator("#new-key").wait_for()
    watched.go("/webhooks")
    create_webhook(page)
    page.locator("#webhook-secret").wait_for()
    watched.go("/webhooks")
    page.get_by_role("button", name="Send a test").click()
    filled.scenes += [
        Scene("keys", "/keys"),
        Scene("key-created", "/keys", shows="#new-key", act=create_key),
        Scene("webhooks", "/webhooks"),
        Scene("webhook-secret", "/webhooks", shows="#webhook-secret", act=create_webhook),
    ]


def _fill_inbound(filled: Filled, watched: Watched) -> None:
    page = watched.page
    watched.go("/inbox")
    page.get_by_role("button", name="Send a test mail").click()
    message = page.locator("#mails a").first.get_attribute("href") or ""

    def create_route(page: Page, path: str = "/mail", kind: str = "SendGrid Inbound Parse") -> None:
        page.get_by_label("Recipients").fill("*+ticket-*@*")
        page.get_by_label("Format").select_option(label=kind)
        page.get_by_label("URL of your application").fill(f"{filled.application}{path}")
        page.get_by_role("button", name="Create route").click()

    def send(page: Page, name: str) -> None:
        page.get_by_role("button", name=name, exact=True).click()
        page.locator(".attempt").first.wait_for()

    def send_nothing(page: Page) -> None:
        page.get_by_label("From").fill("nobody")
        page.get_by_role("button", name="Send", exact=True).click()

    def open_all(page: Page) -> None:
        for one in page.locator("main details").all():
            one.evaluate("one => one.open = true")

    watched.go("/inbound")
    create_route(page, "/busy", "Postmark inbound webhook")
    page.get_by_role("link", name="I have copied it").click()
    send(page, "Hard bounce")
    failed = urlsplit(page.url).path
    watched.go("/inbound")
    create_route(page)
    page.get_by_role("link", name="I have copied it").click()
    route = urlsplit(page.url).path
    for name in ("Reply from Gmail, above", "Injection attempt", "Subject of 2,000 characters"):
        watched.go(route)
        send(page, name)
    filled.scenes += [
        Scene("inbound", "/inbound", OPERATOR),
        Scene("inbound-secret", "/inbound", OPERATOR, "#route-key", create_route),
        Scene("inbound-route", route, OPERATOR),
        Scene("inbound-mail", urlsplit(page.url).path, OPERATOR, ".attempt"),
        Scene("inbound-mail-failed", failed, OPERATOR, ".attempt", open_all),
        Scene("inbound-write", f"{route}/write", OPERATOR),
        Scene("inbound-write-failed", f"{route}/write", OPERATOR, "[role=alert]", send_nothing),
        Scene("inbound-reply", f"{message}/reply", OPERATOR),
    ]


def _fill_owner(filled: Filled, watched: Watched) -> None:
    page = watched.page
    make_account(watched, filled.world.daemon)
    watched.go("/projects")
    page.get_by_label("Name", exact=True).fill("shop")
    page.get_by_role("button", name="Create").click()
    for name in ("for a reader", "for the picture"):
        watched.go("/project")
        page.get_by_label("Role", exact=True).select_option("reader")
        page.get_by_role("button", name="Create invitation link").click()
        link = urlsplit(page.locator("#invitation").inner_text())
        filled.invitations[name] = f"{link.path}?{link.query}"
    watched.go("/inbox")
    page.get_by_role("button", name="Send a test mail").click()
    filled.scenes += [
        Scene("project", "/project", OWNER),
        Scene("projects", "/projects", OWNER),
        Scene("join", filled.invitations["for the picture"], NEW),
    ]


def _fill_reader(filled: Filled, watched: Watched) -> None:
    make_account(watched, filled.world.daemon)
    watched.go(filled.invitations["for a reader"])
    watched.page.get_by_role("button", name="Join").click()
    watched.page.wait_for_url("**/project*")
    filled.scenes += [
        Scene(f"reader-{name}", f"/{name}", READER)
        for name in ("inbox", "keys", "webhooks", "domains", "tests", "project", "inbound")
    ]


def _fill_operator(filled: Filled, watched: Watched) -> None:
    daemon = filled.world.daemon
    command = [
        str(Path(sys.executable).with_name("mailcheck")),
        "account",
        "sign-in-link",
        ACCOUNT_NAME,
    ]
    made = subprocess.run(
        command,
        cwd=daemon.folder,
        env=daemon.environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    link = urlsplit(next(one for one in made.stdout.split() if one.startswith("http")))
    watched.go(f"{link.path}?{link.query}")
    page = watched.page
    page.locator("main form button").first.click()
    page.locator("nav[aria-label=Main]").wait_for()
    _fill_inbound(filled, watched)
    watched.go("/account/people")
    person = page.locator("main table a").first.get_attribute("href") or ""
    filled.scenes += [
        Scene("people", "/account/people", OPERATOR),
        Scene("people-activity", "/account/people/activity", OPERATOR),
        Scene("person", person, OPERATOR),
        Scene("doctor", "/account/doctor", OPERATOR),
        Scene("operator-account", "/account", OPERATOR),
    ]


_FILLS: Mapping[str, Callable[[Filled, Watched], None]] = {
    NEW: _fill_new,
    ANN: _fill_ann,
    OWNER: _fill_owner,
    READER: _fill_reader,
    OPERATOR: _fill_operator,
}
