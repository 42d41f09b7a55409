"""Pages to create, list and revoke API keys, with the use of their rate limits."""

from collections.abc import Sequence

from msgspec import Struct

from mailcheck.api.requests.fields import INTEGER
from mailcheck.api.requests.parsing import Query
from mailcheck.core.accounts import MAX_REQUESTS
from mailcheck.core.errors import ExpectedFailure, InvalidParameter
from mailcheck.core.faults import LARGEST_EVERY
from mailcheck.core.instants import DAY, HOUR, Instant
from mailcheck.core.memory.client_limits import DAY_WINDOW
from mailcheck.core.rights import SCOPE_TEXTS, Scope, make_rights
from mailcheck.operations.accounts.authenticate import CheckBudget
from mailcheck.operations.accounts.own_keys import MAX_KEY_NAME, KeyUse, KeyWish, OwnKeys
from mailcheck.web.dashboard.charts import draw_requests
from mailcheck.web.dashboard.rendering import Renderer, redirect
from mailcheck.web.dashboard.snippets import KEY_PLACEHOLDER, write_snippets
from mailcheck.web.dashboard.visits import CONFIRMED_OWNERS, EDITORS, OWNERS, Page, Visit, with_form
from mailcheck.web.site import costs
from mailcheck.web.site.replies import Reply

LIFETIMES = {
    "0": "never",
    "1": "in 1 day",
    "7": "in 7 days",
    "30": "in 30 days",
    "90": "in 90 days",
    "365": "in 1 year",
}
"""Times until a key expires that the form offers, in days; 0 is no end."""


OVERLAPS = {
    "0": "ends at once",
    "1": "stays valid for 1 hour",
    "24": "stays valid for 1 day",
    "168": "stays valid for 7 days",
}
"""Hours for which a rotated key stays valid that the form offers."""

ORDERS = {"newest": "newest first", "name": "by name", "used": "most used today", "idle": "idle"}
"""Orders of the list of keys; ``idle`` begins with the key that was not used for longest."""

DAYS_SHOWN = 30
"""Number of days in the chart of requests."""


def choose_keys(keys: Sequence[KeyUse], search: str, sort: str) -> list[KeyUse]:
    """Return the keys whose name, or that of their maker, contains a text, in an order."""
    folded = search.strip().casefold()
    found = [
        listed
        for listed in keys
        if folded in listed.key.name.casefold()
        or (listed.maker is not None and folded in listed.maker.name.casefold())
    ]
    if sort == "name":
        return sorted(found, key=lambda one: one.key.name.casefold())
    if sort == "used":
        return sorted(found, key=lambda one: -one.used_today)
    if sort == "idle":
        return sorted(found, key=lambda one: one.last_used_at or 0)
    return found


class KeyForm(Struct, frozen=True):
    """The form for a new key: its name, the rights that limit it, and days until it expires.

    ``tags`` are separated by spaces. Nothing is checked yet.
    """

    name: str = ""
    scopes: tuple[str, ...] = ()
    tags: str = ""
    tag_prefix: str = ""
    days: str = "0"
    per_minute: str = ""
    per_day: str = ""


def read_key_form(form: Query) -> KeyForm:
    """Read the form for a new key.

    :raises InvalidParameter: there are more scopes than exist.
    """
    return KeyForm(
        name=form.text("name") or "",
        scopes=form.texts("scope", len(Scope)),
        tags=form.text("tags") or "",
        tag_prefix=(form.text("tag_prefix") or "").strip(),
        days=form.text("days") or "0",
        per_minute=(form.text("per_minute") or "").strip(),
        per_day=(form.text("per_day") or "").strip(),
    )


def read_limit(name: str, text: str) -> int | None:
    """Return a limit of requests, or `None` for an empty text.

    :raises InvalidParameter: it is not a whole number.
    """
    return INTEGER.parse(name, text, 1, MAX_REQUESTS) if text else None


def read_lifetime(days: str) -> int | None:
    """Return the milliseconds until a key expires, or `None` for never.

    :raises InvalidParameter: the form does not offer this time.
    """
    if days not in LIFETIMES:
        raise InvalidParameter("days", f"choose one of the offered times; got {days[:20]!r}")
    return int(days) * DAY or None


class KeyPages(Struct, frozen=True):
    """The pages of an account's API keys, and of the settings for programs.

    :param submission: host:port for submission with a key as the password, or ``""``.
    :param has_faults: whether simulated failures can be set.
    """

    _keys: OwnKeys
    _checks: CheckBudget
    _renderer: Renderer
    _submission: str
    _has_faults: bool

    def pages(self) -> list[Page]:
        """List the pages."""
        return [
            Page("GET", "/connect", self.connect, costs.FREE),
            Page("GET", "/keys", self.show, costs.FREE, EDITORS),
            *with_form(
                self.show,
                Page("POST", "/keys", self.create, costs.SMALL, CONFIRMED_OWNERS),
                Page("POST", "/keys/<key_id>/fault", self.set_fault, costs.FREE, OWNERS),
                Page("POST", "/keys/<key_id>/rotate", self.rotate, costs.SMALL, CONFIRMED_OWNERS),
            ),
            Page("POST", "/keys/<key_id>/revoke", self.revoke, costs.AUDITED, OWNERS),
        ]

    async def connect(self, visit: Visit) -> Reply:
        """GET /connect: snippets with a placeholder for the key."""
        snippets = write_snippets(visit.urls, KEY_PLACEHOLDER, self._submission)
        return self._renderer.page(
            visit, "connect.html", snippets=snippets, placeholder=KEY_PLACEHOLDER
        )

    async def show(self, visit: Visit, failure: ExpectedFailure | None = None) -> Reply:
        """GET /keys?search=&sort=. A failure of a form is shown on the same page."""
        search, sort = visit.query.text("search") or "", visit.query.text("sort") or "newest"
        keys = await self._keys.valid(visit.account)
        requests = await self._keys.requests_by_day(visit.account, DAYS_SHOWN)
        today = DAY_WINDOW.index(visit.asked_at)
        return self._renderer.page(
            visit,
            "keys.html",
            error=failure,
            keys=choose_keys(keys, search, sort),
            key_count=len(keys),
            search=search,
            sort=sort,
            orders=ORDERS,
            overlaps=OVERLAPS,
            is_operator=visit.visitor.is_operator,
            default=self._keys.authenticator.default_limits,
            chart=draw_requests(requests, today, DAYS_SHOWN),
            requests=[
                (Instant(day * DAY), number)
                for day, number in sorted(requests.items(), reverse=True)
            ],
            checks=await self._checks.peek(visit.account.id),
            given=read_key_form(visit.form),
            scope_texts=SCOPE_TEXTS,
            lifetimes=LIFETIMES,
            longest=MAX_KEY_NAME,
            largest_every=LARGEST_EVERY,
            has_faults=self._has_faults,
        )

    async def create(self, visit: Visit) -> Reply:
        """POST /keys: a `KeyForm`. Only the response to it shows the key."""
        given = read_key_form(visit.form)
        rights = make_rights(given.scopes, given.tags.split(), given.tag_prefix or None)
        lifetime = read_lifetime(given.days)
        per_minute = read_limit("per_minute", given.per_minute)
        wish = KeyWish(
            given.name, rights, per_minute, read_limit("per_day", given.per_day), lifetime
        )
        # Only the operator raises limits above the configured ones.
        most = None if visit.visitor.is_operator else self._keys.authenticator.default_limits
        issued = await self._keys.create(
            visit.account, wish, visit.actor, made_by=visit.visitor.id, most=most
        )
        snippets = write_snippets(visit.urls, issued.secret, self._submission)
        return self._renderer.page(visit, "key_created.html", issued=issued, snippets=snippets)

    async def rotate(self, visit: Visit) -> Reply:
        """POST /keys/<key_id>/rotate: overlap. Only the response to it shows the new key."""
        overlap = visit.form.text("overlap") or ""
        if overlap not in OVERLAPS:
            problem = f"choose one of the offered times; got {overlap[:20]!r}"
            raise InvalidParameter("overlap", problem)
        rotated = await self._keys.rotate(
            visit.account,
            visit.path["key_id"],
            visit.actor,
            made_by=visit.visitor.id,
            overlap=int(overlap) * HOUR,
        )
        snippets = write_snippets(visit.urls, rotated.secret, self._submission)
        return self._renderer.page(
            visit,
            "key_created.html",
            issued=rotated,
            snippets=snippets,
            earlier_until=rotated.earlier.expires_at,
        )

    async def set_fault(self, visit: Visit) -> Reply:
        """POST /keys/<key_id>/fault: every, a number or empty."""
        given = (visit.form.text("every") or "").strip()
        is_number = given.isascii() and given.isdigit()
        if given and not (is_number and len(given) <= len(str(LARGEST_EVERY))):
            raise InvalidParameter(
                "every",
                f"enter an integer from 1 to {LARGEST_EVERY}, or leave the field empty;"
                f" got {given[:20]!r}",
            )
        every = int(given) if given else None
        await self._keys.set_fault(visit.account, visit.path["key_id"], every)
        return redirect(visit, "/keys", done="key-fault-set")

    async def revoke(self, visit: Visit) -> Reply:
        """POST /keys/<key_id>/revoke."""
        await self._keys.revoke(visit.account, visit.path["key_id"], visit.actor)
        return redirect(visit, "/keys", done="key-revoked")
