"""The forms of routes and of mails for them, as they are read and shown."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.api.requests.parsing import Query
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.inbound import (
    InboundFault,
    InboundFormat,
    InboundRoute,
    InboundVerdict,
    MailProgram,
    Place,
    Verdicts,
)
from mailcheck.operations.inbound.manage_routes import DEFAULT_SPEED, RouteSettings
from mailcheck.operations.write_mail import File
from mailcheck.web.dashboard.visits import Visit

T = TypeVar("T")

LONGEST_FIELD = 3_000
"""Maximum number of characters of a field: fifty addresses, or a long subject."""

LONGEST_TEXT = 200_000
"""Maximum number of characters of the text of a mail that is written on a page."""

MOST_FILES = 100
"""Maximum number of files of a mail that is written on a page."""

FAULT_TEXTS: Mapping[InboundFault, str] = {
    InboundFault.TWICE: "Deliver it twice",
    InboundFault.LATE: "Deliver it 10 seconds late",
    InboundFault.OUT_OF_ORDER: "Deliver it after the next mail",
    InboundFault.WRONG_SIGNATURE: "Sign it with a wrong key",
    InboundFault.OLD_TIME_STAMP: "Sign it with an old time stamp",
    InboundFault.CUT_OFF: "Cut the first request off",
}
"""The faults, as forms offer them."""


class RouteForm(Struct, frozen=True, kw_only=True):
    """The values of the form for a route."""

    to: str = ""
    format: str = InboundFormat.MAILCHECK.value
    url: str = ""
    secret: str = ""
    user: str = ""
    password: str = ""
    speed: str = str(DEFAULT_SPEED)
    fault: str = ""

    @property
    def settings(self) -> RouteSettings:
        """The settings of a new route.

        :raises InvalidParameter: the speed is not a number.
        """
        return RouteSettings(
            to=self.to,
            url=self.url,
            secret=self.secret or None,
            user=self.user,
            password=self.password,
            speed=_read_speed(self.speed),
            fault=self.fault,
        )

    @property
    def changes(self) -> RouteSettings:
        """The settings of a route that is changed: empty secrets stay as they are.

        :raises InvalidParameter: the speed is not a number.
        """
        return replace(self.settings, password=self.password or None)


_ROUTE_FIELDS = ("to", "format", "url", "secret", "user", "password", "speed", "fault")


def read_route_form(form: Query) -> RouteForm:
    """Read the form for a route. Nothing is checked yet.

    :raises InvalidParameter: a field was sent twice, or is too long.
    """
    given: dict[str, Any] = {name: (_text(form, name) or "").strip() for name in _ROUTE_FIELDS}
    return RouteForm(**given)


def read_changes(form: Query, route: InboundRoute) -> RouteForm:
    """Read the form that changes a route, whose format stays as it is."""
    return replace(read_route_form(form), format=route.format)


def form_of(route: InboundRoute) -> RouteForm:
    """Return the form with the settings of a route, without its secrets."""
    return RouteForm(
        to=route.to,
        format=route.format,
        url=route.url,
        user=route.user,
        speed=str(route.speed),
        fault=route.fault or "",
    )


def read_format(text: str) -> InboundFormat:
    """Parse a format.

    :raises InvalidParameter: there is no such format.
    """
    return _choice(InboundFormat, "format", text)


def _read_speed(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 8):
        raise InvalidParameter("speed", f"the speed must be a number; got {text[:20]!r}")
    return int(text)


class MailForm(Struct, frozen=True, kw_only=True):
    """The values of the form for a mail."""

    route_id: str = ""
    author: str = ""
    to: str = ""
    cc: str = ""
    bcc: str = ""
    subject: str = ""
    text: str = ""
    program: str = MailProgram.GMAIL.value
    place: str = Place.ABOVE.value
    spf: str = InboundVerdict.PASS.value
    dkim: str = InboundVerdict.PASS.value
    dmarc: str = InboundVerdict.PASS.value
    spam: str = ""
    fault: str = ""

    @property
    def verdicts(self) -> Verdicts:
        """The verdicts on the mail.

        :raises InvalidParameter: one of them is unknown.
        """
        spf, dkim, dmarc = (
            _choice(InboundVerdict, name, getattr(self, name)) for name in ("spf", "dkim", "dmarc")
        )
        is_spam = bool(self.spam)
        return Verdicts(
            spf=spf, dkim=dkim, dmarc=dmarc, is_spam=is_spam, spam_score=9.9 if is_spam else 0.0
        )

    @property
    def quoting(self) -> tuple[MailProgram, Place]:
        """The mail program that quotes, and the place of the answer.

        :raises InvalidParameter: one of them is unknown.
        """
        return _choice(MailProgram, "program", self.program), _choice(Place, "place", self.place)


def read_mail_form(form: Query) -> MailForm:
    """Read the form for a mail. Nothing is checked yet.

    :raises InvalidParameter: a field was sent twice, or is too long.
    """
    given: dict[str, Any] = {
        name: (_text(form, name) or "").strip()
        for name in MailForm.__struct_fields__
        if name != "text" and form.parameters.get(name)
    }
    return MailForm(**given, text=_text(form, "text", LONGEST_TEXT) or "")


def split_addresses(text: str) -> tuple[str, ...]:
    """Return the addresses of a field as a request has them: one text, or none."""
    return (text,) if text else ()


def read_files(visit: Visit) -> tuple[File, ...]:
    """Return the files of the form.

    :raises InvalidParameter: there are too many.
    """
    if len(visit.files) > MOST_FILES:
        problem = f"a mail may have {MOST_FILES} files here; got {len(visit.files)}"
        raise InvalidParameter("files", problem)
    return tuple(File(file.filename, file.content_type, file.data) for file in visit.files)


def _text(form: Query, name: str, longest: int = LONGEST_FIELD) -> str | None:
    found = form.texts(name, 1, longest)
    return found[0] if found else None


def _choice(kind: Callable[[str], T], name: str, text: str) -> T:
    try:
        return kind(text)
    except ValueError:
        raise InvalidParameter(
            name, f"choose one of the offered values; got {text[:40]!r}"
        ) from None
