"""Render templates: navigation, notices and what else every page shares."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup
from msgspec import Struct

from mailcheck.checks.quality.topics import topic_of, topic_of_finding
from mailcheck.core.addresses import SEPARATOR, split_subaddress
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.instants import Instant, format_instant
from mailcheck.web.dashboard.cookies import THEMES, theme_of
from mailcheck.web.dashboard.static_files import StaticFiles
from mailcheck.web.dashboard.visits import Visit
from mailcheck.web.site.errors import NOT_FOUND, status_of
from mailcheck.web.site.replies import Reply

Entry = tuple[str, str]

MENU: tuple[Entry, ...] = (
    ("Overview", "/"),
    ("Inbox", "/inbox"),
    ("Deliverability", "/tests"),
    ("Domains", "/domain"),
    ("Connect", "/connect"),
    ("Keys", "/keys"),
)

SUBMENUS: dict[str, tuple[Entry, ...]] = {
    "/domain": (
        ("Domain check", "/domain"),
        ("Blocklists", "/blocklists"),
        ("Watches", "/watches"),
        ("Reports", "/reports"),
    )
}
"""Entry of the menu -> the pages that belong together with it, shown in a line below the menu."""


def is_current(entry: str, path: str) -> bool:
    """Tell whether a path lies at or below an entry of the menu, or of what lies below it."""
    return any(
        path == one or (one != "/" and path.startswith(f"{one}/"))
        for one in (entry, *(below for _, below in SUBMENUS.get(entry, ())))
    )


class Submenu(NamedTuple):
    """A line below the menu: the title of its entry, and each page with whether it is shown.

    ``is_open``: the page that is shown is one of them. The others are there for who goes by keys.
    """

    title: str
    is_open: bool
    pages: tuple[tuple[str, str, bool], ...]


def list_submenus(path: str) -> list[Submenu]:
    """Give the lines below the menu."""
    return [
        Submenu(
            title,
            is_current(entry, path),
            tuple((name, one, path == one or path.startswith(f"{one}/")) for name, one in pages),
        )
        for title, entry in MENU
        if (pages := SUBMENUS.get(entry, ()))
    ]


NOTICES: Mapping[str, str] = {
    "signed-out": "You have signed out.",
    "signed-up": "Welcome: your account and its inbox are ready.",
    "password-changed": "Your password has been changed. All other sessions have ended.",
    "key-fault-set": "What the key's mails meet is set. It holds from its next sign-in on.",
    "key-revoked": "The key has been revoked: requests with it are refused from now on.",
    "receivers-chosen": "Alerts go there from now on.",
    "sample-sent": "A sample mail is on its way to your inbox.",
    "message-deleted": "The mail has been deleted.",
    "messages-deleted": "The mails have been deleted.",
    "messages-read": "The mail of the list is marked as read.",
    "recheck-started": "All checks run once more.",
    "report-share-renewed": "The old link to the report is dead. There is a new one.",
    "test-deleted": "The test has been deleted, with its report and its share link.",
    "report-deleted": "The report has been deleted, with its counts.",
    "reports-deleted": "The reports have been deleted, with their counts.",
    "share-renewed": "The old share link is dead. There is a new one.",
    "alert-acknowledged": "You know of it: only its end is told.",
    "watch-deleted": "It is watched no more.",
    "watch-made": "It is watched from now on. The first check says how it is.",
    "watch-run": "It has been checked.",
    "webhook-deleted": "The webhook has been deleted: nothing more is posted.",
    "webhook-replayed": "All mail that is still in the inbox is posted once more.",
    "webhook-resumed": "The webhook goes on where it stood.",
    "webhook-test-failed": "The test was not taken: the last deliveries below say why.",
    "webhook-test-taken": "The test was taken by your receiver.",
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

FORM_TOKEN = "form-token"  # noqa: S105
"""Name of the field, and of the meta element, that holds the token."""


@cache
def _templates() -> "Environment":
    """Make what compiles the templates: each when it is first filled in, once in a process."""
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
    templates.filters["topic"] = topic_of
    templates.globals["topic_of_finding"] = topic_of_finding
    templates.filters["thousands"] = "{:,}".format
    templates.filters["octets"] = format_size
    templates.filters["short_of"] = shorten_recipient
    return templates


class Renderer(Struct, frozen=True):
    """Fills templates in.

    :param refuses_mail: returns whether the server takes no mail now, for want of disk space.
    """

    _static: StaticFiles
    _refuses_mail: Callable[[], bool]

    def part(self, template: str, **values: Any) -> Markup:
        """Render a part of a page from nothing but values."""
        return Markup(_templates().get_template(template).render(**values))  # noqa: S704

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
        """Render a page; in its template are `visit`, `link`, `static` and `form_token` too.

        :param error: gives the page its status, and is ``problem`` in the template.
        """
        if error is not None:
            status = status_of(error)
        path = "/" + "/".join(
            part.decode("utf-8", "replace") for part in visit.request.prepath or ()
        )
        field = Markup('<input type="hidden" name="{}" value="{}">')
        compiled = _templates().get_template(template)
        text = compiled.render(
            visit=visit,
            owner=visit.owner,
            link=visit.link,
            static=lambda name: visit.link(self._static.path(name)),
            static_text=self._static.text,
            form_token=lambda: field.format(FORM_TOKEN, visit.form_secret.token()),
            bare_form_token=visit.form_secret.token,
            menu=[
                (title, entry, is_current(entry, path) and status != NOT_FOUND)
                for title, entry in MENU
            ],
            submenus=list_submenus("" if status == NOT_FOUND else path),
            refuses_mail=self._refuses_mail(),
            here_uri=visit.request.uri.decode("ascii", "replace"),
            theme=theme_of(visit),
            themes=THEMES,
            notice=NOTICES.get(visit.query.text("done") or ""),
            **{"problem": "" if error is None else str(error), **values},
        )
        body = text.encode("utf-8", "replace")
        return Reply(status, body, "text/html; charset=utf-8", {**PAGE_HEADERS, **(headers or {})})


def redirect(visit: Visit, path: str, *, cookies: Sequence[str] = (), **query: str) -> Reply:
    """Send a browser to a page of the dashboard by GET (RFC 9110 15.4.4)."""
    address = visit.link(path) + (f"?{urlencode(query)}" if query else "")
    return Reply(303, b"", "text/plain; charset=utf-8", {"Location": address}, cookies)


def render_moment(instant: Instant) -> Markup:
    """Write a moment for people, in UTC; the script turns it into their own time."""
    iso = format_instant(instant)
    text = f"{iso[:10]} {iso[11:16]} UTC"
    return Markup('<time datetime="{}">{}</time>').format(iso, text)


def format_duration(seconds: int) -> str:
    """Write for people how long something takes: ``5 minutes``."""
    for length, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds > length:
            count = -(-seconds // length)
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{seconds} second{'' if seconds == 1 else 's'}"


def format_size(count: int) -> str:
    """Write a size for people: ``41 kB``."""
    size = float(count)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 10 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def shorten_recipient(recipient: str, mailbox: str) -> str:
    """Write an address of somebody's own inbox as its tag; any other is written whole."""
    local_part = recipient.rpartition("@")[0]
    name, tag = split_subaddress(local_part)
    if name != mailbox:
        return recipient
    return f"{SEPARATOR}{tag}" if tag else local_part
