"""Mail into applications: routing, deliveries as the provider makes them, faults and waits."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from twisted.internet.defer import Deferred, fail

from mailcheck.assembly.workers import Workers
from mailcheck.config.options import SmtpOptions
from mailcheck.core.accounts import Caller, RequestLimits
from mailcheck.core.audit import COMMAND_LINE
from mailcheck.core.errors import (
    InboundMailNotFound,
    InboundRouteNotFound,
    InvalidParameter,
    MailTooLarge,
    MessageNotFound,
    StoreUnavailable,
    WorkerDied,
)
from mailcheck.core.identifiers import KeyId, MessageId
from mailcheck.core.inbound import (
    LATE_BY,
    MOST_A_LOOP,
    InboundFault,
    InboundFormat,
    InboundMailId,
    InboundRoute,
    InboundRouteId,
    InboundState,
    InboundVerdict,
    ReadyMail,
    Verdicts,
)
from mailcheck.core.instants import SECOND
from mailcheck.core.messages import Envelope, Session
from mailcheck.operations.inbound.deliver_mail import HIDDEN
from mailcheck.operations.inbound.manage_routes import RouteSettings
from mailcheck.operations.inbound.read_attempts import AttemptPage
from mailcheck.operations.inbound.send_mail import Letter, SentMail, default_recipient
from mailcheck.ports.probes import InboundAnswer
from mailcheck.store.inbound_store import InboundFilter
from mailcheck.workers.scheduling import DirectWorker
from tests.house import House, config_in_memory, mail, result_of, run
from tests.table import rows
from tests.web.workers import FaultyWorker

URL = "http://app.example.com/in"
ALL = InboundFilter()
BROKEN = InboundAnswer(500, body=b"no")


class Application:
    """A house whose account has routes to an application."""

    def __init__(self, parser: DirectWorker | None = None) -> None:
        self.writer, self.parser = FaultyWorker(), parser or DirectWorker()
        config = config_in_memory(smtp=SmtpOptions(max_message_size=2**25))
        self.house = House(
            config,
            Workers(self.writer, DirectWorker(), self.parser),
        )
        parts = self.house.assembly.inbound
        self.deliver, self.operations = parts.deliver, parts.operations
        self.receivers = self.house.receivers
        self.account_id = self.house.account.id
        self.caller = Caller(self.account_id, KeyId("k"), RequestLimits(9, 9))
        run(self.deliver.start())

    def route(self, kind: InboundFormat = InboundFormat.POSTMARK, **settings: Any) -> InboundRoute:
        """Create a route."""
        given = RouteSettings(**{"to": "support@*", "url": URL, **settings})
        made: InboundRoute = run(
            self.operations.routes.create(self.account_id, kind, given, COMMAND_LINE)
        )
        return made

    def send(self, route: InboundRoute, **letter: Any) -> SentMail:
        """Send a mail to the application."""
        letter = letter or {"text": "Hi"}
        sent: SentMail = run(self.operations.send.send(self.account_id, route.id, Letter(**letter)))
        return sent

    def submit(self, *recipients: str, sender: str = "app@app.test") -> None:
        """Let the application send a mail over the submission port."""
        session = Session("127.0.0.1", "app", is_extended=True, account_id=self.account_id)
        accepted = tuple(replace(self._recipient, address=recipient) for recipient in recipients)
        envelope = Envelope(sender, accepted)
        result_of(self.house.receiver.deliver(session, envelope, mail("Hello")))

    @property
    def _recipient(self) -> Any:
        from mailcheck.core.messages import Recipient

        return Recipient("", self.account_id, "")

    def page(self, wanted: InboundFilter = ALL) -> AttemptPage:
        """Return the attempts."""
        page: AttemptPage = run(self.operations.read.attempts(self.account_id, wanted, 99))
        return page

    def states(self) -> list[InboundState]:
        """Return the states of the deliveries, oldest first."""
        return [one.delivery.state for one in reversed(self.page().deliveries)]

    def pass_time(self, seconds: float) -> None:
        """Advance the clock."""
        self.house.pass_time(seconds)

    @property
    def subjects(self) -> list[str]:
        """The subjects of the requests in the format of Postmark, in order."""
        return [json.loads(request.body)["Subject"] for request in self.receivers.inbound]


@pytest.fixture
def application() -> Application:
    """An application without a route."""
    return Application()


def test_a_written_mail_reaches_the_application(application: Application) -> None:
    """The request is made at once, and its attempt is listed with the answer, without secrets."""
    route = application.route(url="http://u:p%40@app.example.com/in?a=1")
    assert (route.url, route.user, route.password) == (f"{URL}?a=1", "u", "p@")
    sent = application.send(route, author="Bo <bo@b.test>", subject="Hi", text="Hello")
    (request,) = application.receivers.inbound
    body = json.loads(request.body)
    assert (request.url, body["From"], body["Subject"]) == (f"{URL}?a=1", "bo@b.test", "Hi")
    assert body["OriginalRecipient"] == "support@app.example"
    (attempt,) = application.page(InboundFilter(mail_id=sent.mail_id)).attempts
    assert (attempt.status, attempt.problem, attempt.answer) == (200, "", b"taken")
    assert ("Authorization", HIDDEN) in attempt.request_headers
    assert attempt.answer_headers == (("Server", "app"),)
    assert application.page().is_delivered


def test_the_mail_of_the_application_itself_is_routed(application: Application) -> None:
    """A submitted mail reaches the routes that its recipients match, and the inbox as before."""
    application.route()
    application.route(to="*+ticket-*@*", url=f"{URL}/tickets")
    application.submit("Support@app.test", "in+ticket-9@app.test", "someone@else.test")
    assert sorted(request.url for request in application.receivers.inbound) == [
        URL,
        f"{URL}/tickets",
    ]
    application.submit("someone@else.test")
    assert len(application.receivers.inbound) == 2


def test_mail_over_smtp_has_our_own_verdicts(application: Application) -> None:
    """SPF of a client outside is evaluated, here without any record."""
    address = application.house.address("a")
    application.route(to="*")
    application.house.receive(address)
    application.pass_time(60)
    (request,) = application.receivers.inbound
    headers = {one["Name"]: one["Value"] for one in json.loads(request.body)["Headers"]}
    assert headers["Received-SPF"].lower().startswith("none")


STATUSES: Any = [
    (200, InboundState.DELIVERED, 1),
    (403, InboundState.FAILED, 1),
    (500, InboundState.DELIVERED, 2),
]


@pytest.mark.parametrize(("status", "state", "requests"), STATUSES)
def test_the_provider_decides_by_status(
    application: Application, status: int, state: InboundState, requests: int
) -> None:
    """A status is done, final or retried, on the provider's schedule shortened by the factor."""
    application.receivers.inbound_answers = [InboundAnswer(status)]
    application.send(application.route(speed=60))
    application.pass_time(0.9)
    assert len(application.receivers.inbound) == 1
    application.pass_time(0.2)
    assert len(application.receivers.inbound) == requests
    assert application.states() == [state]


def test_the_schedule_ends(application: Application) -> None:
    """After the last retry the mail is given up, with as many attempts as the provider makes."""
    application.receivers.inbound_answers = [BROKEN] * 99
    application.send(application.route(speed=3_600))
    for _ in range(40):
        application.pass_time(1)
    assert application.states() == [InboundState.FAILED]
    assert [one.number for one in application.page().attempts] == list(range(11, 0, -1))


def test_an_application_that_was_down_gets_its_mail(application: Application) -> None:
    """Without an answer, the mail is retried; the problem is listed."""
    application.receivers.inbound_answers = [InboundAnswer(problem="its host does not answer")]
    application.send(application.route())
    application.pass_time(2)
    last, first = application.page().attempts
    assert (first.status, first.problem) == (None, "its host does not answer")
    assert last.status == 200


def test_rate_limits_are_no_attempts(application: Application) -> None:
    """A target that gets too much delays the mail, and no attempt is counted."""
    application.receivers.inbound_answers = [InboundAnswer(problem="too much", wait=3 * SECOND)]
    application.send(application.route())
    assert application.page().total == 0
    application.pass_time(3)
    assert [one.number for one in application.page().attempts] == [1]


@pytest.mark.parametrize("fault", list(InboundFault))
def test_faults(application: Application, fault: InboundFault) -> None:
    """Each fault happens to the mail for which it is chosen, and to no other."""
    route = application.route(InboundFormat.MAILCHECK, to="*")
    application.send(route, subject="one", text="", fault=fault)
    application.send(route, subject="two", text="")
    application.pass_time(5)
    posted = [json.loads(request.body) for request in application.receivers.inbound]
    subjects = [body["data"]["subject"] for body in posted]
    application.pass_time(LATE_BY / SECOND)
    expected = {
        InboundFault.TWICE: ["one", "two", "one"],
        InboundFault.LATE: ["two"],
        InboundFault.OUT_OF_ORDER: ["two", "one"],
        InboundFault.CUT_OFF: ["one", "two", "one"],
    }
    assert subjects == expected.get(fault, ["one", "two"])
    assert len(application.receivers.inbound) == 3 if len(subjects) == 3 else 2
    assert application.receivers.cut_off == (fault is InboundFault.CUT_OFF)


@pytest.mark.parametrize("fault", [InboundFault.WRONG_SIGNATURE, InboundFault.OLD_TIME_STAMP])
def test_forged_requests_are_sent_once(application: Application, fault: InboundFault) -> None:
    """The provider does not know of a forged request, so it is not retried."""
    application.receivers.inbound_answers = [InboundAnswer(500)]
    route = application.route(InboundFormat.MAILCHECK, fault=fault.value)
    application.send(route)
    application.pass_time(60)
    assert application.states() == [InboundState.FAILED]
    application.send(route, text="Hi", fault="")
    assert InboundState.DELIVERED in application.states()


class _Dying(DirectWorker):
    """Dies of its second call."""

    def __init__(self) -> None:
        self.calls = 0

    def run(self, call: Callable[[], Any], owner: str = "") -> Deferred[Any]:
        """Run a call, or die."""
        self.calls += 1
        return fail(WorkerDied("died")) if self.calls == 2 else super().run(call, owner)


def test_a_worker_that_dies_while_a_request_is_written() -> None:
    """The request is written again: the work for a mail of another account may have ended it."""
    worker = _Dying()
    application = Application(worker)
    application.send(application.route(), text="a" * 10_000)
    assert (application.states(), worker.calls) == ([InboundState.DELIVERED], 3)


def test_a_stop_while_a_request_is_written() -> None:
    """The mail waits for the next start: a provider that stops has not given it up."""
    parser = FaultyWorker()
    application = Application(parser)
    route = application.route()
    parser.is_slow, parser.good_calls = True, 1
    application.send(route, text="a" * 10_000)
    assert application.states() == [InboundState.WAITING]
    run(application.deliver.stop())
    assert application.states() == [InboundState.WAITING]
    parser.is_slow = False
    run(application.deliver.start())
    assert application.states() == [InboundState.DELIVERED]


def test_a_loop_is_stopped_with_a_finding(application: Application) -> None:
    """An application that answers its own mails is stopped, and the attempt says why."""
    application.route(to="*")
    for _ in range(MOST_A_LOOP + 2):
        application.submit("support@app.test")
    assert len(application.receivers.inbound) == MOST_A_LOOP
    assert application.states().count(InboundState.STOPPED) == 2
    stopped = [one for one in application.page().attempts if "loop" in one.problem]
    assert len(stopped) == 2
    route = run(application.operations.routes.of_account(application.account_id))[0]
    for _ in range(MOST_A_LOOP + 1):
        application.send(route, author="app@app.test", to=("support@app.test",), text="")
    assert len(application.receivers.inbound) == 2 * MOST_A_LOOP + 1


def test_smtp(application: Application) -> None:
    """A route to a mail server carries the mail itself to all of its recipients."""
    route = application.route(InboundFormat.SMTP, url="smtp://127.0.0.1:2525")
    application.receivers.inbound_answers = [InboundAnswer(451), InboundAnswer(250)]
    raw = b"From: a@b.test\nTo: c@d.test\n\nHi\n"
    application.send(route, raw_message=raw, envelope_sender="")
    for _ in range(8):
        application.pass_time(1)
    mailed = application.receivers.mailed[-1]
    assert mailed.raw_message == raw.replace(b"\n", b"\r\n")
    assert (mailed.envelope_sender, mailed.recipients) == ("", ("c@d.test",))
    assert application.states() == [InboundState.DELIVERED]


def test_a_mail_that_is_too_large_for_the_provider(application: Application) -> None:
    """A mail beyond the limit of the provider is not sent, and the attempt says so."""
    route = application.route(InboundFormat.SES)
    run(application.operations.routes.confirm(route.id))
    application.receivers.inbound.clear()
    application.send(route, text="x" * 200_000)
    assert application.receivers.inbound == []
    (attempt,) = application.page().attempts
    assert "at most 153,600 octets" in attempt.problem
    assert InboundState.FAILED in application.states()


def test_a_route_waits_for_its_confirmation(application: Application) -> None:
    """The opening request is made at once, and mails wait until the route is confirmed."""
    route = application.route(InboundFormat.SES)
    (opening,) = application.receivers.inbound
    assert json.loads(opening.body)["Type"] == "SubscriptionConfirmation"
    application.send(route)
    assert len(application.receivers.inbound) == 1
    assert run(application.operations.routes.confirm(route.id))
    assert len(application.receivers.inbound) == 2
    assert not run(application.operations.routes.confirm(InboundRouteId("none")))


def test_credentials_if_asked(application: Application) -> None:
    """SNS sends its credentials in a second request, after a 401 that asks for them."""
    asks = InboundAnswer(401, headers=(("WWW-Authenticate", "Basic"),))
    application.receivers.inbound_answers = [asks]
    application.route(InboundFormat.SES, user="u", password="p")
    first, second = application.receivers.inbound
    assert "Authorization" not in dict(first.headers)
    assert dict(second.headers)["Authorization"].startswith("Basic ")


def test_ready_made_mails(application: Application) -> None:
    """Each ready-made mail is sent by its name."""
    route = application.route(InboundFormat.SMTP, url="smtp://127.0.0.1:2525")
    for number, name in enumerate(ReadyMail, 1):
        application.send(route, ready=name)
        assert len(application.receivers.mailed) == number, name


def test_a_reply_to_a_stored_message(application: Application) -> None:
    """The recipient of a stored message answers it, in its thread; alone, the message is resent."""
    raw = b"From: app@app.test\r\nTo: ana@c.test\r\nMessage-ID: <m@app>\r\nSubject: Hi\r\n\r\nText"
    application.submit("ana@c.test")
    application.house.receive(application.house.address(), raw=raw)
    stored = application.house.ask("GET", "/inbox/messages").answer().json["messages"][0]
    route = application.route(InboundFormat.SMTP, url="smtp://127.0.0.1:2525")
    message_id = MessageId(stored["id"])
    application.send(route, message_id=message_id, text="Thanks")
    application.send(route, message_id=message_id)
    reply, again = application.receivers.mailed
    assert b"In-Reply-To: <m@app>" in reply.raw_message
    assert (reply.recipients, b"Re: Hi" in reply.raw_message) == (("app@app.test",), True)
    assert again.raw_message == raw
    sent = application.send(route, mail_id=reply.id, verdicts=Verdicts(spf=InboundVerdict.FAIL))
    assert application.receivers.mailed[-1].raw_message == reply.raw_message
    assert sent.mail_id != reply.id


def test_a_wait_ends_when_the_application_takes_the_mail(application: Application) -> None:
    """A wait returns with the answer, with the last failure, or at its end."""
    read = application.operations.read
    application.receivers.inbound_answers = [BROKEN]
    route = application.route()
    sent = application.send(route)
    from twisted.internet.defer import Deferred

    wanted = InboundFilter(mail_id=sent.mail_id)
    wait = Deferred.fromCoroutine(read.wait(application.caller, wanted, 9, 30))
    assert not wait.called
    application.pass_time(1)
    page = result_of(wait)
    assert (page.is_delivered, page.pending, page.total) == (True, 0, 2)
    application.receivers.inbound_answers = [InboundAnswer(403)]
    refused = InboundFilter(mail_id=application.send(route).mail_id)
    page = run(read.wait(application.caller, refused, 9, 30))
    assert (page.is_delivered, page.pending) == (False, 0)
    nothing = InboundFilter(mail_id=InboundMailId("none"))
    wait = Deferred.fromCoroutine(read.wait(application.caller, nothing, 9, 5))
    application.pass_time(5)
    assert result_of(wait).total == 0


BAD_SETTINGS: Any = [
    ("to", {"to": ""}),
    ("to", {"to": "no address"}),
    ("to", {"to": "support"}),
    ("to", {"to": "*" * 400}),
    ("url", {"url": ""}),
    ("url", {"url": "ftp://a.test"}),
    ("url", {"url": "smtp://a.test"}),
    ("url", {"url": "http://mailcheck.example/in"}),
    ("secret", {"secret": "x\n"}),
    ("secret", {"secret": "x" * 300}),
    ("user", {"user": "a:b"}),
    ("speed", {"speed": 3_601}),
    ("fault", {"fault": "bad luck"}),
    ("fault", {"fault": "old-time-stamp"}),
]


@rows(*BAD_SETTINGS)
def test_settings_are_checked(
    application: Application, field: str, settings: dict[str, Any]
) -> None:
    """A setting that is invalid is refused when a route is made, and names its field."""
    with pytest.raises(InvalidParameter) as caught:
        application.route(**settings)
    assert caught.value.name == field


def test_routes_of_others(application: Application) -> None:
    """A route, a message and a mail that the account does not have are not found."""
    route = application.route()
    send = application.operations.send
    other = application.house.add_account("other")
    for account_id, route_id, letter, failure in (
        (other.id, route.id, Letter(text=""), InboundRouteNotFound),
        (application.account_id, route.id, Letter(message_id=MessageId("x")), MessageNotFound),
        (application.account_id, route.id, Letter(mail_id=InboundMailId("x")), InboundMailNotFound),
    ):
        with pytest.raises(failure):
            run(send.send(account_id, route_id, letter))


def test_letters_are_checked(application: Application) -> None:
    """A letter has one source, and an author."""
    route = application.route()
    for letter in (
        {"raw_message": b"", "ready": ReadyMail.EMPTY},
        {"text": "a", "mail_id": InboundMailId("x")},
        {"text": "a", "author": "a@b.test, c@d.test"},
        {"text": "a", "to": ("nobody",)},
        {"text": "a", "envelope_sender": "nobody at all"},
        {"text": "a", "fault": "x"},
    ):
        with pytest.raises(InvalidParameter):
            application.send(route, **letter)
    with pytest.raises(MailTooLarge):
        application.send(route, raw_message=bytes(2**26))
    application.writer.fault = StoreUnavailable("the disk is gone")
    with pytest.raises(StoreUnavailable):
        application.send(route)


@rows(
    ("in@app.test", "in@app.test"),
    ("support@*", "support@app.example"),
    ("*+ticket-*@*.test", "test+ticket-test@test.test"),
    ("*", "test@app.example"),
)
def test_default_recipients(pattern: str, address: str) -> None:
    """A mail without a recipient goes to an address that the pattern matches."""
    assert default_recipient(pattern) == address
