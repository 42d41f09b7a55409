"""The APIs from which an application gets the mails that routes have brought to it."""

import json
from base64 import b64encode
from typing import Any
from urllib.parse import urlsplit

import pytest

from mailcheck.core.audit import COMMAND_LINE
from mailcheck.core.identifiers import AccountId
from mailcheck.core.inbound import (
    InboundDeliveryId,
    InboundFormat,
    InboundMail,
    InboundMoment,
    InboundRoute,
)
from mailcheck.core.instants import HOUR, SECOND
from mailcheck.operations.inbound.manage_routes import RouteSettings
from mailcheck.operations.inbound.send_mail import Letter
from mailcheck.store.inbound_store import InboundStore
from mailcheck.web.providers.inbound import ses, sns_key
from mailcheck.web.providers.inbound.catalogue import inbound_providers
from tests.house import Answer, House, result_of, run
from tests.web.providers.test_inbound_formats import MAIL, PICTURE

HTTP = "http://app.example.com/in"


class Receiver:
    """A house with one route, and an application that asks the provider's API."""

    def __init__(self, house: House, name: InboundFormat) -> None:
        self.house = house
        self.account_id: AccountId = house.account.id
        self.key = house.issue_key(house.account)
        self.operations = house.assembly.inbound.operations
        self.store = InboundStore(house.assembly.runtime.engine)
        settings = RouteSettings(to="*", url=HTTP)
        routes = self.operations.routes
        self.route: InboundRoute = run(routes.create(self.account_id, name, settings, COMMAND_LINE))

    def send(self, raw_message: bytes = MAIL) -> InboundMail:
        """Send a mail over the route, and return it."""
        letter = Letter(raw_message=raw_message, to=("in@app.test", "blind@app.test"))
        sent = run(self.operations.send.send(self.account_id, self.route.id, letter))
        stored = result_of(self.store.find_mail(self.account_id, sent.mail_id))
        assert stored is not None
        mail: InboundMail = stored.mail
        return mail

    def request(self, mail: InboundMail) -> Any:
        """Return the JSON of the request for a mail."""
        write = inbound_providers("http://127.0.0.1/providers")[self.route.format].write
        assert write is not None
        moment = InboundMoment(
            InboundDeliveryId("0195e0a0-1234-7abc-8def-00000000d001"), mail.received_at
        )
        return json.loads(write(mail, self.route, moment).body)

    def get(self, path: str, **headers: str) -> Answer:
        """Ask the API of a provider with a key."""
        usual = headers or {"authorization": f"Bearer {self.key}"}
        return self.house.open(f"/providers{path}", headers=usual).answer()

    def download(self, url: str) -> Answer:
        """Get a URL without a key."""
        parts = urlsplit(url)
        return self.house.open(parts.path).answer()


@pytest.fixture
def receiver(house: House, request: pytest.FixtureRequest) -> Receiver:
    """An application with a route of the format that a test names."""
    return Receiver(house, request.param)


def of(name: InboundFormat) -> pytest.MarkDecorator:
    """Give a test a route of a format."""
    return pytest.mark.parametrize("receiver", [name], indirect=True, ids=[name.value])


@of(InboundFormat.RESEND)
def test_resend_shows_a_mail(receiver: Receiver) -> None:
    """The id in the event is that of the mail, whose bytes need no key."""
    mail = receiver.send()
    event = receiver.request(mail)["data"]
    answer = receiver.get(f"/resend/emails/receiving/{event['email_id']}")
    assert answer.status == 200, answer.json
    shown = answer.json
    assert shown["object"] == "email"
    assert shown["subject"] == "Ré: Invoice 9"
    assert shown["bcc"] == ["blind@app.test"]
    assert shown["received_for"] == ["in@app.test", "blind@app.test"]
    assert len(shown["headers"]["received"]) == 2
    data = b64encode(PICTURE).decode()
    assert f'src="data:image/png;base64,{data}"' in shown["html"]
    raw = receiver.download(shown["raw"]["download_url"])
    assert raw.body == MAIL
    with_ids = receiver.get(f"/resend/emails/receiving/{mail.id}?html_format=cid").json
    assert 'src="cid:ii_77"' in with_ids["html"]


@of(InboundFormat.RESEND)
def test_resend_gives_out_files(receiver: Receiver) -> None:
    """Each file of the event has a URL."""
    mail = receiver.send()
    event = receiver.request(mail)["data"]
    base = f"/resend/emails/receiving/{mail.id}/attachments"
    listed = receiver.get(base).json
    assert [file["id"] for file in listed["data"]] == [file["id"] for file in event["attachments"]]
    shown = receiver.get(f"{base}/{event['attachments'][0]['id']}").json
    answer = receiver.download(shown["download_url"])
    assert answer.body == PICTURE
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert receiver.get(f"{base}/{mail.id}").status == 404


@of(InboundFormat.RESEND)
def test_resend_lists_mails(receiver: Receiver) -> None:
    """A page begins after a mail, or ends before one."""
    mails = []
    for _ in range(4):
        mails.append(receiver.send().id)
        receiver.house.pass_time(1)
    newest_first = mails[::-1]

    def ids(query: str) -> tuple[list[str], bool]:
        listed = receiver.get(f"/resend/emails/receiving{query}").json
        return [one["id"] for one in listed["data"]], listed["has_more"]

    assert ids("") == (newest_first, False)
    assert ids("?limit=2") == (newest_first[:2], True)
    assert ids(f"?limit=2&after={newest_first[1]}") == (newest_first[2:], False)
    assert ids(f"?limit=2&before={newest_first[3]}") == (newest_first[1:3], True)
    assert receiver.get("/resend/emails/receiving?limit=0").status == 422


@of(InboundFormat.BREVO)
def test_brevo_gives_out_files(receiver: Receiver) -> None:
    """The token of a file in the request is that of the download."""
    (item,) = receiver.request(receiver.send())["items"]
    token = item["Attachments"][1]["DownloadToken"]
    headers = {"api-key": receiver.key}
    answer = receiver.get(f"/brevo/v3/inbound/attachments/{token}", **headers)
    assert answer.body.strip() == b"a,b"
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    for wrong in ("x", "bnVsbA", b64encode(b"[" * 5_000).decode()):
        path = f"/brevo/v3/inbound/attachments/{wrong}"
        assert receiver.get(path, **headers).status == 404


@of(InboundFormat.MAILTRAP)
def test_mailtrap_shows_a_mail(receiver: Receiver) -> None:
    """The ids in the event are those of the message, whose bytes need no key."""
    mail = receiver.send()
    (event,) = receiver.request(mail)["events"]
    base = f"/mailtrap/api/inbound/inboxes/{event['inbox_id']}/messages"
    shown = receiver.get(f"{base}/{event['message_id']}").json
    assert shown["id"] == event["message_id"]
    assert shown["in_reply_to"] == "<m0@app.test>"
    assert receiver.download(shown["raw_message_url"]).body == MAIL
    assert receiver.download(shown["attachments"][0]["download_url"]).body == PICTURE
    assert [one["id"] for one in receiver.get(base).json["data"]] == [shown["id"]]
    assert receiver.get(f"{base}?last_id={shown['id']}").json["data"] == []
    for wrong in ("x", "1", str(1 << 70)):
        assert receiver.get(f"{base}/{wrong}").status == 404


@of(InboundFormat.MAILGUN_STORE)
def test_mailgun_shows_a_stored_mail(receiver: Receiver) -> None:
    """The URLs in the request need the key as a password."""
    mail = receiver.send()
    path = f"/mailgun/v3/domains/app.test/messages/{mail.id}"
    basic = {"authorization": f"Basic {b64encode(f'api:{receiver.key}'.encode()).decode()}"}
    shown = receiver.get(path, **basic).json
    assert shown["stripped-text"] == "Café, yes"
    assert urlsplit(shown["attachments"][0]["url"]).path == f"/providers{path}/attachments/0"
    assert receiver.get(f"{path}/attachments/0", **basic).body == PICTURE
    assert receiver.get(f"{path}/attachments/9", **basic).status == 404
    whole = receiver.get(path, **basic, accept="message/rfc2822").json
    assert whole["body-mime"].endswith(MAIL.decode())


@of(InboundFormat.RESEND)
def test_a_download_is_proved_and_ends(receiver: Receiver) -> None:
    """A URL is for one mail and for an hour, and ends with its route."""
    mail, other = receiver.send(), receiver.send()
    url = receiver.get(f"/resend/emails/receiving/{mail.id}").json["raw"]["download_url"]
    assert receiver.download(url).status == 200
    assert receiver.download(url.replace(mail.id, other.id)).status == 404
    assert receiver.download(url.replace("/raw", "/9")).status == 404
    head, _, proof = url.rpartition("-")
    assert receiver.download(f"{head}-{proof.replace(proof[0], 'x')}").status == 404
    receiver.house.pass_time(HOUR / SECOND)
    assert receiver.download(url).status == 404


@of(InboundFormat.POSTMARK)
def test_a_mail_is_behind_the_api_of_its_provider_only(receiver: Receiver) -> None:
    """The API of one provider does not show what another one has brought."""
    mail = receiver.send()
    assert receiver.get(f"/resend/emails/receiving/{mail.id}").status == 404
    assert receiver.get("/resend/emails/receiving").json["data"] == []


@of(InboundFormat.RESEND)
def test_a_mail_is_shown_to_its_account_only(receiver: Receiver) -> None:
    """The key of another account gets no mail of this one."""
    mail = receiver.send()
    stranger = receiver.house.issue_key(receiver.house.add_account("other"))
    headers = {"authorization": f"Bearer {stranger}"}
    assert receiver.get(f"/resend/emails/receiving/{mail.id}", **headers).status == 404
    assert receiver.get("/resend/emails/receiving", **headers).json["data"] == []


@of(InboundFormat.SES)
def test_a_subscription_is_confirmed_by_its_token(receiver: Receiver) -> None:
    """Only the token confirms a subscription, by GET or as the libraries of AWS do."""
    house, route = receiver.house, receiver.route
    topic, token = ses.topic_of(route.id), ses.token_of(route)

    def act(method: str, query: str, body: bytes = b"") -> Answer:
        path = f"/providers/sns/?{query}" if query else "/providers/sns/"
        kind = {"content-type": "application/x-www-form-urlencoded"}
        return house.open(path, method, data=body, headers=kind).answer()

    def is_confirmed() -> bool:
        found: InboundRoute = run(receiver.operations.routes.show(route.account_id, route.id))
        return found.is_confirmed

    wrong = f"Action=ConfirmSubscription&TopicArn={topic}&Token={'0' * 64}"
    assert act("GET", wrong).status == 400
    assert act("GET", f"Action=ConfirmSubscription&TopicArn={topic}x&Token={token}").status == 404
    assert act("GET", "Action=Unsubscribe").status == 403
    assert act("GET", "").status == 400
    assert not is_confirmed()
    form = f"Action=ConfirmSubscription&TopicArn={topic}&Token={token}&Version=2010-03-31"
    answer = act("POST", "", form.encode())
    assert answer.status == 200
    assert f"<SubscriptionArn>{topic}:".encode() in answer.body
    assert is_confirmed()
    assert act("GET", form).status == 200


@of(InboundFormat.SES)
def test_a_certificate_has_an_address_of_its_own(receiver: Receiver) -> None:
    """The certificate is at the URL in the messages, which cannot be guessed."""
    path = ses.certificate_path(receiver.route)
    answer = receiver.download(f"http://127.0.0.1/providers/sns{path}")
    assert answer.body == sns_key.write_certificate(receiver.route.secret)
    for wrong in (f"/{receiver.route.id}/x.pem", "/x/x.pem"):
        assert receiver.download(f"http://127.0.0.1/providers/sns{wrong}").status == 404
