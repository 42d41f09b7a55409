"""A browser without a screen: keeps cookies, submits forms and validates every page."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from html import unescape
from urllib.parse import urlencode, urlsplit

from msgspec import Struct

from mailcheck.api.urls import API_PATH
from mailcheck.core.accounts import Account
from mailcheck.web.dashboard.addresses import MINE, address_in, first_segment
from mailcheck.web.dashboard.cookies import DEVICE, SESSION, write_cookie
from mailcheck.web.dashboard.rendering import PAGE_POLICY
from tests.house import Answer, House, run
from tests.web.event_stream import EventStream
from tests.web.raw_http import RawHttp, read_answer, request

PICTURES = re.compile(r'<svg hidden aria-hidden="true">\n<symbol.*?</svg>', re.DOTALL)
"""The symbols of the icons: the same half of the elements on each page."""

TAG = re.compile(
    r"<!--.*?-->|<!doctype html>"
    r"""|<(/?)([a-z][a-z0-9-]*)((?:\s+[^\s"'<>/=]+(?:="[^"]*")?)*)\s*(/?)>""",
    re.DOTALL,
)
"""A comment or a tag as pages write them. Python's parser, which reads everything, takes thrice the
time."""

FIELD = re.compile(r"""([^\s"'<>/=]+)(?:="([^"]*)")?""")
"""An attribute."""

NEW_KEY = r'id="new-key">(mck_[a-z2-7]{32})<'
"""The secret of a new key, on the page that shows it once."""

VOID = frozenset({"meta", "link", "input", "img", "br", "hr", "source", "wbr"})

_NAMES = (
    "api blocklists connect digest domain domains inbound inbox keys heartbeats "
    "live places project reports tests traffic watches webhooks"
)
SEGMENTS = frozenset(_NAMES.split(" ")) | {""}
"""The first segments of the paths in a project."""

OPEN_TOO = frozenset(("", "api"))
"""Those whose pages visitors see without a project."""


def in_project(path: str, project: str = MINE) -> str:
    """Return the address of a path in a project; that of another path is the path itself."""
    is_of_project = first_segment(path) in SEGMENTS and not path.startswith(f"{API_PATH}/")
    return address_in(project, path) if is_of_project else path


class Browser:
    """A visitor. ``page`` is the last page.

    A path without a project is one in ``project``, as links of its pages are. If that is empty, it
    is sent as it is.
    """

    def __init__(self, house: House, peer: str = "192.0.2.10", *fields: str) -> None:
        self.house = house
        self.peer = peer
        self.fields = fields
        self.cookies: dict[str, str] = {}
        self.page = PageReader()
        self.project = MINE

    def open(self, path: str, *fields: str) -> Answer:
        """GET a page."""
        return self.send("GET", path, b"", *fields)

    def submit(self, path: str, *fields: str, **form: str) -> Answer:
        """POST a form with the token of the last page. A browser without one opens the overview."""
        if not self.page.source:
            self.open("/")
        token = {"form-token": self.page.form_token} if self.page.form_token else {}
        return self.post(path, *fields, **{**token, **form})

    def post(self, path: str, *fields: str, **form: str) -> Answer:
        """POST a form without adding a token."""
        return self.send("POST", path, urlencode(form).encode(), *fields)

    def follow(self, answer: Answer) -> Answer:
        """Follow a redirect, and further ones."""
        assert answer.status == 303, (answer.status, answer.body[:300])
        while answer.status == 303:
            answer = self.open(answer.headers["location"])
        return answer

    def send(self, method: str, path: str, body: bytes, *fields: str) -> Answer:
        """Send a request as a browser does, and validate the page in the response."""
        path = self.address(path)
        connection = RawHttp(self.house, self.peer)
        accept = "Accept: text/html,application/xhtml+xml,*/*;q=0.8"
        lines = [accept, *self.fields, *fields, *self.cookie_fields]
        if method == "POST":
            if not any(line.startswith("Content-Type:") for line in fields):
                lines.append("Content-Type: application/x-www-form-urlencoded")
            lines.append(f"Content-Length: {len(body)}")
        connection.send(request(path, *lines, method=method) + body)
        answer, rest = read_answer(connection.received(), method)
        assert rest == b""
        connection.hang_up()
        for line in filter(None, answer.headers.get("set-cookie", "").split(", ")):
            self._keep_cookie(line)
        if answer.headers["content-type"].startswith("text/html") and method != "HEAD":
            self.page = judge_page(answer)
        return answer

    def stream(self, path: str, *fields: str) -> EventStream:
        """Open an event stream."""
        connection = RawHttp(self.house, self.peer)
        accept = "Accept: text/event-stream"
        path = self.address(path)
        connection.send(request(path, accept, *self.cookie_fields, *fields))
        return EventStream(connection)

    def address(self, path: str) -> str:
        """Return the address of a path in the project of this browser."""
        is_signed_in = any("session" in name for name in self.cookies)
        is_open = first_segment(path) in OPEN_TOO and not is_signed_in
        return path if is_open or not self.project else in_project(path, self.project)

    def read(self, path: str) -> str:
        """GET a page, and return its text in one line."""
        self.open(path)
        return self.words

    def find(self, pattern: str) -> str:
        """Return the first group of a pattern in the last page, which must have it."""
        found = re.search(pattern, self.page.source, re.DOTALL)
        assert found is not None, (pattern, self.words)
        return found[1]

    @property
    def words(self) -> str:
        """The text of the last page in one line."""
        return " ".join(self.page.text.split())

    @property
    def cookie_fields(self) -> list[str]:
        """The header field with the cookies, if there are any."""
        pairs = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return [f"Cookie: {pairs}"] if pairs else []

    def sign_up(self, name: str = "ann", password: str = "correct horse") -> Account:
        """Create an account, as the form does, without opening a page, and return it."""
        parts = self.house.assembly
        new = run(parts.accounts.register.register(name, password, "", self.peer)).signed_in
        is_secure = parts.runtime.urls.public_url.startswith("https://")
        for cookie, secret in ((SESSION, new.secret), (DEVICE, new.device)):
            self._keep_cookie(write_cookie(cookie, secret, is_secure=is_secure))
        account: Account = new.account
        return account

    def sign_up_by_form(self, name: str = "ann", password: str = "correct horse") -> Answer:
        """Create an account by the form, and return the overview."""
        self.open("/sign-up")
        return self.follow(self.submit("/sign-up", name=name, password=password))

    def sign_in(self, name: str = "ann", password: str = "correct horse") -> Answer:
        """Sign in by the form and return the response."""
        self.open("/sign-in")
        return self.submit("/sign-in", name=name, password=password)

    @property
    def is_signed_in(self) -> bool:
        """Whether a page that requires an account is shown."""
        return self.open("/account").status == 200

    def _keep_cookie(self, line: str) -> None:
        pair, *attributes = (part.strip() for part in line.split(";"))
        name, _, value = pair.partition("=")
        assert "HttpOnly" in attributes
        assert "SameSite=Lax" in attributes
        assert "Path=/" in attributes
        assert name.startswith("__Host-") == ("Secure" in attributes)
        if "Max-Age=0" in attributes:
            self.cookies.pop(name, None)
        else:
            self.cookies[name] = value


class Element(Struct, frozen=True):
    """A start tag: its attributes, the problems that it has by itself, and where it leads."""

    known: Mapping[str, str]
    problems: Sequence[str]
    addresses: Sequence[str]
    is_noted: bool
    """Whether the rest of the page depends on it: it has an id, or is a part of a form."""


@lru_cache(maxsize=16_384)
def read_element(tag: str, fields: str) -> Element:
    """Read a start tag. Most tags of a page are those of the page before."""
    known = {name.lower(): unescape(value) for name, value in FIELD.findall(fields)}
    is_noted = "id" in known or tag in ("input", "select", "textarea", "option", "label")
    return Element(known, tuple(_problems_of(tag, known)), _addresses_of(tag, known), is_noted)


def _problems_of(tag: str, known: Mapping[str, str]) -> Iterator[str]:
    for name in known:
        if name == "style" or name.startswith("on"):
            yield f"<{tag} {name}>: inline"
    if tag == "style" or (tag == "script" and not known.get("src")):
        yield f"<{tag}>: inline"
    if tag == "img" and "alt" not in known:
        yield "<img> without alt"


def _addresses_of(tag: str, known: Mapping[str, str]) -> Sequence[str]:
    if "noopener" in known.get("rel", "") and "noreferrer" in known["rel"]:
        return ()  # links in a mail lead to other sites, without a referrer
    found = [known[name] for name in ("href", "src", "action") if name in known]
    # A browser runs no script and loads no file in such a picture.
    picture = "data:image/svg+xml;base64," if tag == "img" else "\0"
    return tuple(one for one in found if not one.startswith(picture))


class PageReader:
    """Parses a page and collects its problems."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.form_token = ""
        self.fields: dict[str, str] = {}
        """The hidden fields, and the chosen option of each list, by name."""
        self._list = ""
        self.ids: set[str] = set()
        self.addresses: list[str] = []
        self.text = ""
        self.source = ""
        self._open: list[str] = []
        self._labelled: set[str] = set()
        self._unlabelled: list[str] = []

    def feed(self, markup: str) -> None:
        """Read the markup of a page, or of a part of one."""
        parts = TAG.split(markup)
        texts, *groups = (parts[first::5] for first in range(5))
        for closes, tag, fields, is_both in zip(*groups, strict=True):
            if tag and not closes:
                self._begin(tag, read_element(tag, fields))
            if closes or is_both:
                self._end(tag)
        self.problems += [f"not a tag: {text[:80]}" for text in texts if "<" in text]
        self.text = unescape("".join(texts))

    def _begin(self, tag: str, element: Element) -> None:
        """Check an element."""
        if tag not in VOID:
            self._open.append(tag)
        self.problems += element.problems
        self.addresses += element.addresses
        if element.is_noted:
            self._note(tag, element.known)

    def _note(self, tag: str, known: Mapping[str, str]) -> None:
        is_field = tag in ("input", "select", "textarea") and known.get("type") != "hidden"
        if is_field and "hidden" not in known and "aria-label" not in known:
            self._unlabelled.append(known.get("id", "nameless"))
        if tag == "input" and known.get("name") == "form-token":
            self.form_token = known["value"]
        if tag == "input" and known.get("type") == "hidden":
            self.fields[known["name"]] = known["value"]
        if tag == "select":
            self._list = known.get("name", "")
        if tag == "option" and ("selected" in known or self._list not in self.fields):
            self.fields[self._list] = known.get("value", "")
        if tag == "label" and "for" in known:
            self._labelled.add(known["for"])
        if "id" in known:
            if known["id"] in self.ids:
                self.problems.append(f"the id {known['id']} is there twice")
            self.ids.add(known["id"])

    def _end(self, tag: str) -> None:
        """Close an element."""
        if not self._open or self._open.pop() != tag:
            self.problems.append(f"</{tag}> has no start tag")

    def finish(self) -> None:
        """Collect the problems of the page as a whole."""
        self.problems += [f"<{tag}> is not closed" for tag in self._open]
        missing = [field for field in self._unlabelled if field not in self._labelled]
        self.problems += [f"the field {field} has no label" for field in missing]


def read_page(text: str) -> PageReader:
    """Return the reader of a page, or of a part of one."""
    reader = PageReader()
    reader.feed(text)
    reader.finish()
    return reader


@cache
def ids_of_pictures(markup: str) -> set[str]:
    """Fail if the icons violate a rule of pages; return their ids."""
    reader = read_page(markup)
    assert not reader.problems, reader.problems
    assert not reader.addresses
    return reader.ids


def judge_page(answer: Answer) -> PageReader:
    """Fail if a page violates a rule that all pages keep; return the parsed page."""
    headers = answer.headers
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert headers["content-security-policy"] == PAGE_POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert headers["x-robots-tag"] == "noindex, nofollow"
    assert "www-authenticate" not in headers
    text = answer.body.decode("utf-8")
    assert text.startswith('<!doctype html>\n<html lang="en">')
    assert len(re.findall("<h1", text)) == 1, "a page has one heading"
    pictures = PICTURES.search(text)
    reader = read_page(PICTURES.sub("", text, count=1))
    reader.source = text
    assert not (pictures and reader.ids & ids_of_pictures(pictures[0]))
    assert not reader.problems, reader.problems
    for address in reader.addresses:
        parts = urlsplit(address)
        assert not parts.scheme, address
        assert not parts.netloc, address
    return reader
