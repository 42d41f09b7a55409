"""Bodies of requests: JSON, forms and Base64, with errors that name what is wrong."""

import binascii
import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct
from werkzeug.http import parse_options_header

from mailcheck.api.shapes import dump_json
from mailcheck.core.errors import InvalidParameter
from mailcheck.operations.write_mail import File
from mailcheck.web.providers.provider import BadBody, FieldMissing, Posting, Sending
from mailcheck.web.site.bodies import FORM, decode_json
from mailcheck.web.site.forms import MULTIPART, Upload, parse_form

T = TypeVar("T")

MAX_BATCH = 1_000
"""Maximum number of mails of one request. SendGrid allows the most."""

MAX_PEOPLE = 50
"""Maximum number of addresses of one mail, as most providers have it."""

MAX_SUBSTITUTIONS = 10_000
"""Maximum number of characters of the names of substitutions of a mail. SendGrid allows 10,000
bytes of names and values."""

MAX_LOOKUPS = 2_000_000
"""Maximum number of places of a text at which a name of a substitution could begin, times the
number of lengths of names. The work for a text is proportional to it."""

_MISSING = re.compile(r"missing required field `([^`]+)`(?: - at `\$\.?([^`]*)`)?")
_PLACE = re.compile(r" - at `\$\.?([^`]*)`")


_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")


class Template(Struct, frozen=True):
    """A template of the provider, which does not exist here, and the values for it."""

    name: str
    values: object = None

    @property
    def text(self) -> str:
        """The text of a mail that shows them in place of the template."""
        values = msgspec.json.format(dump_json(self.values), indent=2).decode()
        return f"Template: {self.name}\n\n{values}\n"


def read_json(posting: Posting) -> Any:
    """Return the JSON value of a body.

    :raises BadBody: the body is not JSON.
    """
    try:
        return decode_json(posting.body)
    except ValueError as problem:
        raise BadBody(f"the body must be JSON: {problem}") from None


def convert(value: object, kind: type[T]) -> T:
    """Turn a JSON value into a request.

    :raises FieldMissing: a required field is missing.
    :raises InvalidParameter: a field has another type.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as problem:
        text = str(problem)
        missing = _MISSING.search(text)
        if missing is not None:
            raise FieldMissing(missing[1], f"`{missing[1]}` is missing") from None
        place = _PLACE.search(text)
        name = "" if place is None else place[1]
        said = _PLACE.sub("", text)
        said = said[:1].lower() + said[1:]
        shown = f"`{name}` is invalid: {said}" if name else f"the body is invalid: {said}"
        raise InvalidParameter(name or "body", shown) from None


def convert_each(name: str, values: object, most: int = MAX_BATCH) -> list[Any]:
    """Return the items of a batch.

    :raises InvalidParameter: it is not a list, is empty, or has too many items.
    """
    if not isinstance(values, list) or not values:
        raise InvalidParameter(name, f"`{name}` must be a list with at least one mail")
    require_few(name, values, most, "mails")
    return values


def read_each(
    values: Iterable[Any], read: Callable[[Any], Sending]
) -> Iterator[Sending | InvalidParameter]:
    """Yield the mail of each item of a batch, or the reason why the item is rejected."""
    for value in values:
        try:
            yield read(value)
        except InvalidParameter as problem:
            yield problem


class Form(NamedTuple):
    """The fields and files of a form, in order."""

    fields: Sequence[tuple[str, str]]
    files: Sequence[Upload]

    def all(self, name: str) -> list[str]:
        """Return the values of a field."""
        return [value for key, value in self.fields if key == name]

    def get(self, name: str) -> str | None:
        """Return the first value of a field, or `None`."""
        return next(iter(self.all(name)), None)

    def require(self, name: str) -> str:
        """Return the first value of a field.

        :raises FieldMissing: there is none.
        """
        found = self.get(name)
        if found is None:
            raise FieldMissing(name, f"`{name}` is missing")
        return found

    def beginning(self, prefix: str) -> list[tuple[str, str]]:
        """Return the fields that begin with a prefix, without the prefix."""
        return [(key[len(prefix) :], value) for key, value in self.fields if key.startswith(prefix)]

    @property
    def shown(self) -> dict[str, object]:
        """The form as JSON: fields by name, and the names and sizes of files."""
        found: dict[str, list[object]] = {}
        for key, value in self.fields:
            found.setdefault(key, []).append(value)
        for file in self.files:
            facts = {"filename": file.filename, "type": file.content_type, "size": len(file.data)}
            found.setdefault(file.name, []).append(facts)
        return {key: values[0] if len(values) == 1 else values for key, values in found.items()}


def read_form(posting: Posting) -> Form:
    """Parse a form, as ``multipart/form-data`` or ``application/x-www-form-urlencoded``.

    :raises BadBody: the body is not a form, or has too many fields.
    """
    media_type = parse_options_header(posting.content_type)[0]
    if media_type not in (MULTIPART, FORM):
        raise BadBody("the body must be a form: multipart/form-data or x-www-form-urlencoded")
    try:
        return Form(*parse_form(posting.body, posting.content_type))
    except ValueError as problem:
        raise BadBody(f"the form cannot be parsed: {problem}") from None


def decode_base64(name: str, text: str) -> bytes:
    """Decode a file. Line breaks are allowed.

    :raises InvalidParameter: the text is not Base64.
    """
    try:
        return b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidParameter(name, f"`{name}` must be Base64; got {text[:40]!r}") from None


class Attachment(Struct):
    """A file in Base64, as SendGrid and Mailtrap have it."""

    content: str
    filename: str
    type: str | None = None
    disposition: str | None = None
    content_id: str | None = None


def file_of(attachment: Attachment) -> File:
    """Decode an attachment.

    :raises InvalidParameter: the content is not Base64.
    """
    return File(
        attachment.filename,
        attachment.type or "",
        decode_base64("attachments.content", attachment.content),
        attachment.content_id or "",
        is_inline=attachment.disposition == "inline",
    )


def file_of_url(name: str, url: str, content_id: str = "") -> File:
    """Return a file that contains a URL, in place of the file at that URL.

    Fetching a URL that a request names would let strangers reach other hosts.
    """
    return File(f"{name}.url.txt", "text/plain", f"{url}\n".encode(), content_id, bool(content_id))


def require_few(
    name: str, items: Sequence[object], most: int = MAX_PEOPLE, what: str = "addresses"
) -> None:
    """Check the number of items of a field.

    :raises InvalidParameter: there are too many.
    """
    if len(items) > most:
        raise InvalidParameter(name, f"`{name}` may have {most} {what}; got {len(items)}")


def require_bodies(names: str, *bodies: str | None) -> None:
    """Check that a request has a text, an HTML body, or another form of the text.

    :raises FieldMissing: it has none.
    """
    if not any(bodies):
        raise FieldMissing(names, f"`{names}` is missing: send text or HTML")


def substitute(text: str | None, values: Mapping[str, object]) -> str | None:
    """Replace each name by its value in one pass, the longest name at each place.

    :raises InvalidParameter: there are too many names for a text of this length.
    """
    names = list(filter(None, values))
    if not text or not names:
        return text
    beginnings = {name[0] for name in names}
    lengths = sorted({len(name) for name in names}, reverse=True)
    if sum(map(len, names)) > MAX_SUBSTITUTIONS:
        problem = f"their names may have {MAX_SUBSTITUTIONS:,} characters in all"
    elif sum(map(text.count, beginnings)) * len(lengths) > MAX_LOOKUPS:
        problem = f"the text has {len(text):,} characters"
    else:
        problem = ""
    if problem:
        raise InvalidParameter("substitutions", f"the substitutions are too many: {problem}")
    pieces, end = [], 0
    for match in re.finditer(f"[{re.escape(''.join(beginnings))}]", text):
        start = match.start()
        if start < end:
            continue
        name = next(filter(values.__contains__, _slices(text, start, lengths)), None)
        if name is not None:
            pieces += [text[end:start], str(values[name])]
            end = start + len(name)
    return "".join((*pieces, text[end:]))


def _slices(text: str, start: int, lengths: Iterable[int]) -> Iterator[str]:
    return (text[start : start + length] for length in lengths)


def pairs_of(prefix: str, values: Mapping[str, object] | None) -> Iterable[tuple[str, str]]:
    """Yield a header field for each value; names are shortened to the characters of fields."""
    for name, value in (values or {}).items():
        yield f"{prefix}{_UNSAFE.sub('-', name)[:100]}", text_of(value)


def text_of(value: object) -> str:
    """Return a text as it is, and any other value as JSON."""
    return value if isinstance(value, str) else dump_json(value).decode()
