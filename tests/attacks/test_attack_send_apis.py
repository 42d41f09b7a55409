"""Requests to send APIs are limited before the work that they would cause."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import pytest_twisted
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred, fail

from mailcheck.core.errors import (
    ExpectedFailure,
    InvalidParameter,
    MailTooLarge,
    WorkerDied,
    WorkTooSlow,
)
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.operations.write_mail import MAX_HEADER_TEXT, OutgoingMail, RawMail, make_person
from mailcheck.web.providers import bodies
from mailcheck.web.providers.bodies import MAX_LOOKUPS, read_form, substitute
from mailcheck.web.providers.conversion import (
    MAX_TOTAL,
    Conversion,
    Stamp,
    prepare,
)
from mailcheck.web.providers.provider import BadBody, Posting, Sending
from mailcheck.web.providers.sendgrid import read_mails
from mailcheck.web.site.forms import MAX_PARTS
from mailcheck.workers.child import limit_memory
from mailcheck.workers.process import ProcessWorker
from tests.house import House
from tests.table import rows
from tests.web.provider_requests import post, received, sample
from tests.web.providers.test_providers_every import ROUTES

pytestmark = pytest.mark.attack

STAMP = Stamp(Instant(0), bytes(16), "mailcheck.example")
NAMES = ("subject", "Subject", "Message.Subject.Data")
LONG = "a " * 150_000


def with_subject(value: Any, subject: str) -> Any:
    """Return a request with another subject wherever it has one."""
    if isinstance(value, dict):
        return {
            name: subject
            if name in NAMES and isinstance(one, str)
            else {**one, "Data": subject}
            if name == "Subject"
            else with_subject(one, subject)
            for name, one in value.items()
        }
    return [with_subject(one, subject) for one in value] if isinstance(value, list) else value


WITH_SUBJECT = [
    path
    for path in ROUTES
    if with_subject(sample(path, "a@b.example"), "") != sample(path, "a@b.example")
]
"""The routes whose requests have a subject; others have a template or a whole mail."""


@rows(*WITH_SUBJECT)
def test_a_long_subject_is_rejected_in_the_form_of_the_provider(house: House, path: str) -> None:
    """Folding a header of 300 kB takes seconds, so it is never begun."""
    answer = post(house, path, with_subject(sample(path, "you@customer.example"), LONG))
    assert b"20,000 characters" in answer.body
    assert received(house) == []


def test_a_request_that_grows_is_rejected_before_its_mails_are_built() -> None:
    """The mails of a request are built one at a time, until they are too large together."""
    person = make_person("to", "", "a@example.org").mailbox
    built = 0

    def read(_: Posting) -> Iterator[Sending]:
        nonlocal built
        for _number in range(1_000):
            built += 1
            yield Sending(RawMail("", (person,), bytes(10_000_000)), None)

    with pytest.raises(MailTooLarge, match="send fewer at once"):
        prepare("sendgrid", "", None, read, Posting("POST", "/", {}, b""), STAMP)
    assert built == MAX_TOTAL // 10_000_000 + 1


def test_mails_of_many_people_are_built_one_at_a_time() -> None:
    """The second person of a request to SendGrid has no valid address; the first mail is built."""
    value = {
        "personalizations": [{"to": [{"email": one}]} for one in ("a@example.org", "nonsense")],
        "from": {"email": "x@example.org"},
        "subject": "s",
        "content": [{"type": "text/plain", "value": "text"}],
    }
    mails = iter(read_mails(Posting("POST", "/", {}, json.dumps(value).encode())))
    assert isinstance(next(mails), Sending)
    with pytest.raises(InvalidParameter):
        next(mails)


def test_headers_of_many_mails_are_limited_together() -> None:
    """A long header for each of many people is rejected before all of them are written."""
    person = make_person("to", "", "a@example.org")
    mail = OutgoingMail(author=person, to=(person,), headers=(("X-A", "a" * MAX_HEADER_TEXT),))
    built = 0

    def read(_: Posting) -> Iterator[Sending]:
        nonlocal built
        for _number in range(1_000):
            built += 1
            yield Sending(mail, None)

    with pytest.raises(MailTooLarge, match="headers of the mails"):
        prepare("sendgrid", "", None, read, Posting("POST", "/", {}, b""), STAMP)
    assert built < 50


def test_many_substitutions_are_rejected_before_they_are_tried() -> None:
    """Twelve thousand names for a text in which each could begin at each place are rejected."""
    names = {f"b{number:06}": "y" for number in range(12_000)}
    with pytest.raises(InvalidParameter, match="substitutions are too many"):
        substitute("b" * 200_000, names)
    few = {"b" * length: "y" for length in range(2, 140)}
    assert sum(map(len, few)) < bodies.MAX_SUBSTITUTIONS
    with pytest.raises(InvalidParameter, match="substitutions are too many"):
        substitute("b" * (MAX_LOOKUPS // 100), few)


@given(
    st.text("ab-", max_size=60),
    st.dictionaries(st.text("ab-", min_size=1, max_size=4), st.text("xy", max_size=3), max_size=6),
)
def test_substitution_replaces_the_longest_name_at_each_place(
    text: str, values: dict[str, str]
) -> None:
    """One pass over the text gives what replacing place by place gives."""
    expected, place = "", 0
    while place < len(text):
        names = [name for name in values if text.startswith(name, place)]
        name = max(names, key=len, default="")
        expected += values[name] if name else text[place]
        place += len(name) or 1
    assert substitute(text, values) == expected


def test_a_form_of_many_fields_is_rejected_before_it_is_parsed() -> None:
    """A form has a maximum number of fields, in both of its types."""
    kind = {"content-type": "application/x-www-form-urlencoded"}
    assert len(read_form(Posting("POST", "/", kind, b"&".join([b"a=b"] * 10))).fields) == 10
    with pytest.raises(BadBody, match=f"{MAX_PARTS:,} fields"):
        read_form(Posting("POST", "/", kind, b"a=b&" * 2_000_000))
    kind = {"content-type": "multipart/form-data; boundary=b"}
    part = b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n'
    with pytest.raises(BadBody, match="cannot be parsed"):
        read_form(Posting("POST", "/", kind, part * (MAX_PARTS + 1) + b"--b--\r\n"))


class FailingWorker:
    """A worker whose calls fail."""

    def __init__(self, failure: Exception) -> None:
        self._failure = failure

    def start(self) -> None:
        """Do nothing."""

    def run(self, call: Callable[[], Any], owner: str = "") -> Deferred[Any]:
        """Fail."""
        return fail(self._failure)

    def stop(self) -> Deferred[None]:
        """Do nothing."""
        return Deferred()


@pytest.mark.parametrize(
    "failure", [WorkTooSlow("too slow"), WorkerDied("died"), MemoryError()], ids=repr
)
@pytest_twisted.ensureDeferred
async def test_the_client_is_told_that_its_request_is_too_large(failure: Exception) -> None:
    """A conversion that takes too long or too much memory is a request that is too large."""
    with pytest.raises(MailTooLarge, match="the request is too large"):
        await Conversion(FailingWorker(failure)).run(int, AccountId("a"))
    assert issubclass(MailTooLarge, ExpectedFailure)


@pytest_twisted.ensureDeferred
async def test_the_process_of_conversions_has_limited_memory() -> None:
    """A call that needs more memory than the process may use fails; the next one succeeds."""
    from twisted.internet import reactor

    worker = ProcessWorker(reactor, "requests", None, partial(limit_memory, 512 * 1024 * 1024))
    try:
        with pytest.raises(MailTooLarge):
            await Conversion(worker).run(partial(bytes, 600 * 1024 * 1024), AccountId("a"))
        assert await worker.run(partial(int, 7)) == 7
    finally:
        await worker.stop()


def test_a_lower_limit_of_memory_is_kept() -> None:
    """Where the system limits a process already, the daemon's higher limit is no error."""
    lower = 256 * 1024 * 1024
    program = (
        "import resource as r; from mailcheck.workers.child import limit_memory; "
        f"r.setrlimit(r.RLIMIT_AS, ({lower}, {lower})); limit_memory({4 * lower}); "
        "print(r.getrlimit(r.RLIMIT_AS)[1])"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) == lower
