"""Rendering of templates, with the menu, the notices and the formats that all pages share."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlencode

from markupsafe import Markup, escape
from msgspec import Struct

from mailcheck.checks.dnsbl.catalogue import PROFILE_SIZE
from mailcheck.checks.quality.topics import Topic, topic_of, topic_of_finding
from mailcheck.core.addresses import SEPARATOR, split_subaddress
from mailcheck.core.errors import ExpectedFailure, LimitExceeded
from mailcheck.core.instants import Instant, format_instant
from mailcheck.core.projects import Role
from mailcheck.web.dashboard.addresses import MINE, address_in, first_segment
from mailcheck.web.dashboard.cookies import THEMES, theme_of
from mailcheck.web.dashboard.static_files import StaticFiles
from mailcheck.web.dashboard.visits import Visit
from mailcheck.web.site.failures import NOT_FOUND, problem_of
from mailcheck.web.site.public_pages import has_documentation
from mailcheck.web.site.replies import Reply

Entry = tuple[str, str, Role]

MENU: tuple[Entry, ...] = (
    ("Overview", "/", Role.READER),
    ("Inbox", "/inbox", Role.READER),
    ("Deliverability", "/tests", Role.READER),
    ("Domains", "/domains", Role.READER),
    ("Inbound", "/inbound", Role.READER),
    ("Webhooks", "/webhooks", Role.EDITOR),
    ("Connect", "/connect", Role.READER),
    ("Keys", "/keys", Role.EDITOR),
)
"""The pages of the menu, with the roles that they need."""

PERSONAL = "Personal"
"""The name of a person's own account among the projects."""

MAX_IN_MENU = 30
"""Maximum number of projects in the menu. The page of projects lists all."""

BELOW: Mapping[str, str] = {
    "/reports": "/domains",
    "/traffic": "/domains",
    "/digest": "/domains",
    "/heartbeats": "/domains",
}
"""Paths that belong to a menu entry without being below its path, and that entry."""


def is_current(entry: str, path: str) -> bool:
    """Return whether a path belongs to a menu entry."""
    first = f"/{first_segment(path)}"
    return BELOW.get(first, first) == entry


NOTICES: Mapping[str, str] = {
    "signed-out": "You have signed out.",
    "signed-up": "Welcome! Your account and your inbox are ready.",
    "password-changed": "Your password has been changed. You are signed out everywhere else.",
    "company-linked": "Your company account signs in to this account from now on.",
    "company-removed": "Your company account does not sign in to this account any more.",
    "confirmed": "Thank you. You can now change how you sign in.",
    "passkey-added": "The passkey is ready. It signs in to this account.",
    "passkey-renamed": "The passkey has been renamed.",
    "passkey-removed": "The passkey has been removed.",
    "second-factor-changed": "The way to sign in has been changed.",
    "session-ended": "The session has ended.",
    "account-changed": "The account has been changed.",
    "access-ended": "The sessions and programs of this person have ended.",
    "account-deleted": "The account has been deleted, with all of its data.",
    "inbound-sent": "The mail is on its way to your application.",
    "route-changed": "The route has been changed.",
    "route-deleted": "The route has been deleted, with its mails.",
    "project-created": "The project is ready. Invite people to it.",
    "project-joined": "You are a member of this project now. The pages show its data.",
    "project-left": "You have left the project.",
    "project-renamed": "The project has been renamed.",
    "project-deleted": "The project has been deleted, with all of its data.",
    "member-changed": "The role has been changed.",
    "member-removed": "The person is no longer a member.",
    "key-fault-set": "The simulated failures are set. They apply from the next SMTP login.",
    "key-revoked": "The key has been revoked. Requests with it are rejected.",
    "sample-sent": "A test mail is on its way to your inbox.",
    "deletion-undone": "The messages are back.",
    "undo-too-late": "The messages have been removed: a deletion can be undone for 30 seconds.",
    "nothing-selected": "No message was selected. Select messages first.",
    "messages-read": "The messages are marked as read.",
    "recheck-started": "All checks are running again.",
    "report-share-renewed": "The old share link no longer works. A new one has been created.",
    "test-deleted": "The test has been deleted, with its report and its share link.",
    "report-deleted": "The report has been deleted. Its messages are no longer counted.",
    "digest-saved": "The digest has been saved.",
    "reports-deleted": "The reports have been deleted. Their messages are no longer counted.",
    "sender-decided": "The decision is stored. It counts for all reports about the domain.",
    "share-renewed": "The old share link no longer works. A new one has been created.",
    "alert-acknowledged": "The alert is acknowledged. You will be notified when it ends.",
    "heartbeat-deleted": "The heartbeat has been deleted. Mail with its tag is stored as before.",
    "heartbeat-made": "The heartbeat has been created. Send its mail to the address below.",
    "watch-deleted": "The watch has been deleted.",
    "watch-off": "The domain is no longer checked regularly. Its history is kept.",
    "watch-on": "The domain is watched. You get an alert when something breaks.",
    "watch-run": "The check has finished.",
    "watch-saved": "The settings have been saved.",
    "webhook-deleted": "The webhook has been deleted. Nothing more is sent to it.",
    "webhook-replayed": "All messages that are still in the inbox are sent again.",
    "webhook-resumed": "The webhook is active again and continues where it stopped.",
    "webhook-test-failed": "The test delivery failed. The deliveries below show the reason.",
    "webhook-test-taken": "The test delivery was accepted by your receiver.",
}


if TYPE_CHECKING:
    from jinja2 import Environment

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'self'; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)

PAGE_HEADERS = {
    "Content-Security-Policy": PAGE_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Robots-Tag": "noindex, nofollow",
}

NO_TAG = "no tag"
"""How lists name mail to the address without a tag."""

NO_SUBJECT, NO_AUTHOR = "(no subject)", "(no sender)"
"""How pages name mails without a subject, and without an address in From."""

NULL_SENDER = "<> (null sender)"
"""How pages name the null reverse-path, which bounces and notifications have (RFC 5321 4.5.5)."""

_CODE = re.compile(r"`([^`]+)`")
_BOLD = re.compile(r"\*\*([^*]+)\*\*")

FORM_TOKEN = "form-token"  # noqa: S105
"""Name of the form field and of the meta element that contain the form token."""


@cache
def template_environment() -> "Environment":
    """Return the template environment. A template is compiled when it is first rendered."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("mailcheck.web.dashboard", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    templates.filters["moment"] = render_moment
    templates.filters["number"] = format_number
    templates.filters["percent"] = format_percent
    templates.filters["subject"] = name_subject
    templates.filters["author"] = name_author
    templates.filters["reverse_path"] = name_reverse_path
    templates.filters["topic"] = topic_of
    templates.globals["lists_of_check"] = PROFILE_SIZE
    templates.globals["topic_of_finding"] = topic_of_finding
    templates.filters["topic_of_issue"] = topic_of_issue
    templates.filters["octets"] = format_size
    templates.filters["counted"] = format_count
    templates.filters["sentence"] = format_sentence
    templates.filters["short_of"] = shorten_recipient
    templates.filters["breakable"] = make_breakable
    templates.filters["code_words"] = render_code
    return templates


class Renderer(Struct, frozen=True):
    """Renders templates.

    :param refuses_mail: returns whether the server rejects mail because its disk is full.
    :param has_documentation: returns whether the documentation was built.
    """

    _static: StaticFiles
    _refuses_mail: Callable[[], bool]
    _has_documentation: Callable[[], bool] = has_documentation

    def _guide(self, visit: Visit, path: str, title: str, before: str = "") -> Markup:
        """Return a link to the documentation, or nothing if it was not built."""
        if not self._has_documentation():
            return Markup()
        text = Markup('{}<a href="{}">{}</a>')
        return text.format(before, visit.link(f"/docs/{path}"), title)

    def part(self, template: str, **values: Any) -> Markup:
        """Render part of a page without the values that pages share."""
        return Markup(template_environment().get_template(template).render(**values))  # noqa: S704

    def page(
        self,
        visit: Visit,
        template: str,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        error: ExpectedFailure | None = None,
        **values: Any,
    ) -> Reply:
        """Render a page. Its template can use `visit`, `link`, `static` and `form_token` too.

        :param error: determines the status of the page, and is ``problem`` in the template.
        """
        headers = {**PAGE_HEADERS, **(headers or {})}
        if error is not None:
            refused = problem_of(error)
            status, headers = refused.status, {**headers, **refused.headers}
        path = unquote(visit.page_path)
        field = Markup('<input type="hidden" name="{}" value="{}">')
        compiled = template_environment().get_template(template)
        text = compiled.render(
            visit=visit,
            person=visit.person,
            membership=visit.membership,
            link=visit.link,
            guide=partial(self._guide, visit),
            static=lambda name: visit.link(self._static.path(name)),
            static_text=self._static.text,
            form_token=lambda: field.format(FORM_TOKEN, visit.form_secret.token()),
            bare_form_token=visit.form_secret.token,
            menu=[
                (title, entry, is_current(entry, path) and status != NOT_FOUND)
                for title, entry, role in MENU
                if visit.role.includes(role)
            ],
            **_view_projects(visit, path),
            refuses_mail=self._refuses_mail(),
            here_uri=visit.request.uri.decode("ascii", "replace"),
            theme=theme_of(visit),
            themes=THEMES,
            notice=NOTICES.get(visit.query.text("done") or ""),
            **{"problem": "" if error is None else describe_failure(error), **values},
        )
        body = text.encode("utf-8", "replace")
        return Reply(status, body, "text/html; charset=utf-8", headers)


def _view_projects(visit: Visit, path: str) -> dict[str, Any]:
    """Return the menu of projects. Each entry leads to the same part of the dashboard."""
    names: dict[str, str] = {
        MINE: PERSONAL,
        **{project.project.id: project.project.name for project in visit.projects},
    }
    entries = [entry for _, entry, _ in MENU if visit.project and is_current(entry, path)]
    section = entries[0] if entries else "/"
    shown = visit.project or visit.nearest
    return {
        "project_name": names[shown],
        "project_menu": [
            (name, address_in(project, section), project == visit.project)
            for project, name in list(names.items())[:MAX_IN_MENU]
        ],
    }


def redirect(visit: Visit, path: str, *, cookies: Sequence[str] = (), **query: str) -> Reply:
    """Redirect a browser to a page of the dashboard by GET (RFC 9110 15.4.4)."""
    address = visit.link(path) + (f"?{urlencode(query)}" if query else "")
    return Reply(303, b"", "text/plain; charset=utf-8", {"Location": address}, cookies)


def render_moment(moment: Instant | datetime | str) -> Markup:
    """Render a time in UTC, or a day. A script converts times to the time zone of the reader.

    :param moment: an instant, a time in UTC in any year, or the beginning of an ISO 8601 text.
    """
    if isinstance(moment, datetime):
        iso = f"{moment:%Y-%m-%dT%H:%M:%SZ}"
    else:
        iso = moment if isinstance(moment, str) else format_instant(moment)
    return Markup('<time datetime="{}">{}</time>').format(iso, write_moment(iso))


def write_moment(iso: str) -> str:
    """Return an ISO 8601 time in UTC, or a day, in words: ``2026-11-29 10:30 UTC``."""
    day, _, time = iso.partition("T")
    return f"{day} {time[:5]} UTC" if time else day


def describe_failure(failure: ExpectedFailure) -> str:
    """Return the message of a failure. That of a limit says when to try again."""
    text = str(failure)
    if not isinstance(failure, LimitExceeded) or "try again" in text:
        return text
    return f"{text.removesuffix('.')}; try again in {format_duration(failure.retry_after)}"


def format_duration(seconds: int) -> str:
    """Return a duration in words, rounded up: ``5 minutes``."""
    for length, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds > length:
            return format_count(-(-seconds // length), unit)
    return format_count(seconds, "second")


def format_number(number: float) -> str:
    """Return a number in English: ``1,200``, ``9.0``, ``0.25``. Scores have a decimal."""
    return f"{number:,}" if isinstance(number, int) else f"{number:,.2f}".removesuffix("0")


def format_percent(share: float, digits: int = 0) -> str:
    """Return a share as a percentage. Only all is ``100 %``, and only none is ``0 %``."""
    percent, step = round(100 * share, digits), 10**-digits
    if 0 < share < 1:
        percent = min(max(percent, step), 100 - step)
    return f"{_without_zero(percent)} %"


def format_count(number: float, noun: str) -> str:
    """Return a number with its noun: ``1 second``, ``1,200 messages``."""
    return f"{_without_zero(number)} {noun}{'' if number == 1 else 's'}"


def _without_zero(number: float) -> str:
    return format_number(number).removesuffix(".0")


def format_sentence(text: str) -> str:
    """Return a message as a sentence, with a capital letter and a full stop."""
    ending = "" if text.endswith((".", "!", "?")) else "."
    return f"{text[:1].upper()}{text[1:]}{ending}"


def name_subject(subject: str | None) -> str:
    """Return a subject, or the words for a mail without one."""
    return subject or NO_SUBJECT


def name_author(author: str | None) -> str:
    """Return an author, or the words for a mail without an address in From."""
    return author or NO_AUTHOR


def name_reverse_path(address: str) -> str:
    """Return an envelope sender, or the words for the null reverse-path."""
    return address or NULL_SENDER


def format_size(count: int) -> str:
    """Return a size in words: ``41 kB``."""
    size = float(count)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 10 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def shorten_recipient(recipient: str, mailbox: str) -> str:
    """Return the tag of an address of this mailbox, or `NO_TAG`. Other addresses are unchanged."""
    local_part = recipient.rpartition("@")[0]
    name, tag = split_subaddress(local_part)
    if name != mailbox:
        return recipient
    return f"{SEPARATOR}{tag}" if tag else NO_TAG


def topic_of_issue(one: Mapping[str, Any]) -> Topic:
    """Return the topic of a deduction or a finding in the JSON of a report."""
    return topic_of_finding(one["id"], one.get("check") or one["area"])


def render_code(text: str) -> Markup:
    """Render text between backticks as code, and text between double asterisks in bold."""
    shown = str(escape(text))
    return Markup(_BOLD.sub(r"<b>\1</b>", _CODE.sub(r"<code>\1</code>", shown)))  # noqa: S704


def make_breakable(address: str) -> Markup:
    """Return an address that a narrow page breaks before the tag or the domain, if it must."""
    part = Markup('<span class="part">{}</span>')
    return Markup().join(part.format(piece) for piece in re.split(f"(?=[{SEPARATOR}@])", address))
