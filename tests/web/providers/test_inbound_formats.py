"""The requests that bring received mail to an application, in the format of each provider."""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email import message_from_bytes
from email.policy import HTTP
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA1, SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key
from cryptography.x509 import load_pem_x509_certificate
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from standardwebhooks import Webhook, WebhookVerificationError

from mailcheck.core.identifiers import AccountId
from mailcheck.core.inbound import (
    InboundDeliveryId,
    InboundFault,
    InboundFormat,
    InboundMail,
    InboundMailId,
    InboundMoment,
    InboundRequest,
    InboundRoute,
    InboundRouteId,
    InboundVerdict,
    ReadyMail,
    Verdicts,
)
from mailcheck.core.instants import MINUTE, Instant
from mailcheck.operations.inbound.ready_mails import (
    find_people,
    write_ready_mail,
)
from mailcheck.operations.inbound.scenes import Occasion, Original
from mailcheck.operations.inbox.webhooks.event_signatures import (
    sign_body_with_hmac,
    sign_with_hmac,
    verification_key,
)
from mailcheck.web.providers.inbound import brevo, ses, sns_key
from mailcheck.web.providers.inbound.catalogue import format_rows, inbound_providers
from mailcheck.web.providers.inbound.forms import write_multipart
from mailcheck.web.providers.inbound.received import ReceivedMail
from tests.table import rows

BASE = "http://mailcheck.example/providers"
PROVIDERS = inbound_providers(BASE)
WRITTEN = [name for name, provider in PROVIDERS.items() if provider.write is not None]
SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
AT = Instant(1_795_944_000_000)
PICTURE = b"\x89PNG\r\n\x1a\n\0"

MAIL = "\r\n".join(
    (
        "DKIM-Signature: v=1; a=rsa-sha256; d=s.test; s=a; bh=; b=",
        "From: =?utf-8?q?Ana_G=C3=B3mez?= <ana@s.test>",
        'To: "App, Inc." <in@app.test>, bo@app.test',
        "Subject: =?utf-8?q?R=C3=A9=3A_Invoice_9?=",
        "Date: Sun, 29 Nov 2026 09:00:00 +0000",
        "Message-ID: <m1@s.test>",
        "In-Reply-To: <m0@app.test>",
        "Received: from a by b; Sun, 29 Nov 2026 09:00:00 +0000",
        "Received: from c by a; Sun, 29 Nov 2026 08:59:59 +0000",
        "MIME-Version: 1.0",
        'Content-Type: multipart/mixed; boundary="b"',
        "",
        "--b",
        'Content-Type: multipart/alternative; boundary="c"',
        "",
        "--c",
        "Content-Type: text/plain; charset=iso-8859-1",
        "Content-Transfer-Encoding: quoted-printable",
        "",
        "Caf=E9, yes",
        "",
        "On Sun, Nov 29, 2026 at 8:00 AM App <in@app.test> wrote:",
        "> old",
        "--c",
        "Content-Type: text/html; charset=utf-8",
        "Content-Transfer-Encoding: quoted-printable",
        "",
        '<p>Caf=C3=A9, yes <img src=3D"cid:ii_77"></p><div class=3D"gmail_quote">old</div>',
        "--c--",
        "--b",
        'Content-Type: image/png; name="dot.png"',
        "Content-Disposition: inline; filename=dot.png",
        "Content-ID: <ii_77>",
        "Content-Transfer-Encoding: base64",
        "",
        base64.b64encode(PICTURE).decode(),
        "--b",
        'Content-Type: text/csv; charset=utf-8; name="a.csv"',
        "Content-Disposition: attachment; filename*=utf-8''pr%C3%A9cis.csv",
        "",
        "a,b",
        "--b--",
        "",
    )
).encode()


def mail_of(raw_message: bytes = MAIL, **changes: Any) -> InboundMail:
    """Return a mail with a blind copy."""
    mail = InboundMail(
        InboundMailId("0195e0a0-1234-7abc-8def-0123456789ab"),
        AccountId("a"),
        "bounce@s.test",
        ("in@app.test", "blind+7@app.test"),
        raw_message,
        AT,
    )
    return replace(mail, **changes)


def route_of(name: InboundFormat, **changes: Any) -> InboundRoute:
    """Return a route to an application."""
    route = InboundRoute(
        InboundRouteId("abcdefghijklm"),
        AccountId("a"),
        "default",
        "*",
        name,
        "http://app.test/hook?x=1",
        SECRET,
        AT,
    )
    return replace(route, **changes)


MOMENT = InboundMoment(InboundDeliveryId("0195e0a0-1234-7abc-8def-00000000d001"), AT)


def write(
    name: InboundFormat,
    mail: InboundMail | None = None,
    route: InboundRoute | None = None,
    moment: InboundMoment = MOMENT,
) -> InboundRequest:
    """Return the request of a format: for the first recipient, if each has its own."""
    provider, mail = PROVIDERS[name], mail or mail_of()
    assert provider.write is not None
    if provider.is_per_recipient:
        mail = replace(mail, recipients=mail.recipients[:1])
    return provider.write(mail, route or route_of(name), moment)


def header(request: InboundRequest, name: str) -> str:
    """Return the value of a header."""
    return {key.lower(): value for key, value in request.headers}[name.lower()]


class Form:
    """A form as Python's own parser of MIME reads it: values, and files as name and data."""

    def __init__(self, request: InboundRequest) -> None:
        kind = header(request, "content-type")
        self.values: dict[str, bytes] = {}
        self.files: dict[str, tuple[str | None, str, bytes]] = {}
        if kind == "application/x-www-form-urlencoded":
            text = request.body.decode("ascii")
            for name, value in parse_qsl(text, keep_blank_values=True, encoding="latin-1"):
                self.values[name] = value.encode("latin-1")
            return
        head = f"Content-Type: {kind}\r\n\r\n".encode()
        for part in message_from_bytes(head + request.body, policy=HTTP).iter_parts():
            name = str(part.get_param("name", header="content-disposition"))
            data = part.get_payload(decode=True)
            assert isinstance(data, bytes)
            if part.get_filename() is None:
                self.values[name] = data
            else:
                self.files[name] = (part.get_filename(), part.get_content_type(), data)

    def __getitem__(self, name: str) -> str:
        return self.values[name].decode()


def json_of(request: InboundRequest) -> Any:
    """Return the JSON of a body."""
    return json.loads(request.body)


def test_sendgrid_gets_texts_in_their_charsets() -> None:
    """Inbound Parse has the original bytes, and names their charsets."""
    form = Form(write(InboundFormat.SENDGRID))
    charsets = json.loads(form["charsets"])
    assert charsets["text"] == "iso-8859-1"
    assert form.values["text"].startswith(b"Caf\xe9, yes\r\n")
    assert "Café" in form.values["html"].decode(charsets["html"])
    assert set(charsets) == {"to", "from", "subject", "text", "html"}
    assert form["subject"] == "Ré: Invoice 9"
    assert form["from"] == "Ana Gómez <ana@s.test>"
    assert json.loads(form["envelope"]) == {
        "to": ["in@app.test", "blind+7@app.test"],
        "from": "bounce@s.test",
    }
    assert form["headers"].startswith("Received: by mx0001.sendgrid.net with SMTP id ")
    assert "\nSubject: =?utf-8?q?R=C3=A9=3A_Invoice_9?=\n" in form["headers"]
    assert form["SPF"] == "pass"
    assert form["dkim"] == "{@s.test : pass}"
    assert form["attachments"] == "2"
    assert form.files["attachment1"] == ("dot.png", "image/png", PICTURE)
    assert json.loads(form["content-ids"]) == {"ii_77": "attachment1"}
    facts = json.loads(form["attachment-info"])
    assert facts["attachment1"]["content-id"] == "ii_77"
    assert facts["attachment2"]["charset"] == "utf-8"


def test_sendgrid_raw_has_the_mail_and_no_headers() -> None:
    """Receivers tell the modes of Inbound Parse by the fields ``headers`` and ``email``."""
    form = Form(write(InboundFormat.SENDGRID_RAW))
    assert form.values["email"].endswith(MAIL)
    assert "headers" not in form.values
    assert "text" not in form.values


def test_a_boundary_never_occurs_in_a_value() -> None:
    """A mail that contains the boundary gets a longer one."""
    mail = mail_of(b"Subject: x\r\n\r\n--xYzZY--\r\n--xYzZYZ\r\n")
    form = Form(write(InboundFormat.SENDGRID, mail))
    assert form["text"] == "--xYzZY--\r\n--xYzZYZ\r\n"


WITHOUT_MARKS = (ReadyMail.REPLY_OUTLOOK_BELOW, ReadyMail.REPLY_OUTLOOK_BETWEEN)
"""Outlook marks only the beginning of the mail that it quotes."""


@rows(*(name for name in ReadyMail if "reply-" in name))
def test_a_reply_is_told_from_the_quoted_mail(name: ReadyMail) -> None:
    """The reply is found as Outlook, Gmail and Apple Mail quote: above, below and between."""
    original = Original(MAIL, "in@app.test", "ana@s.test")
    author, recipient = find_people(name, original)
    occasion = Occasion(author=author, recipient=recipient, now=AT, seed=b"s", original=original)
    received = ReceivedMail(write_ready_mail(name, occasion).raw_message)
    has_marks = name not in WITHOUT_MARKS
    assert received.reply.is_reply == has_marks
    assert received.reply.text.count("Thank you, that is right.") == 1
    assert ("Café" in received.reply.text) != has_marks


def test_mailgun_repeats_header_fields() -> None:
    """The form has fields of its own, and one for each name of a header field."""
    form = Form(write(InboundFormat.MAILGUN))
    assert form["recipient"] == "in@app.test"
    assert form["sender"] == "bounce@s.test"
    assert form["subject"] == form["Subject"] == "Ré: Invoice 9"
    assert form["Message-Id"] == "<m1@s.test>"
    assert form["stripped-text"] == "Café, yes"
    assert form["body-plain"].endswith("> old")
    assert "gmail_quote" not in form["stripped-html"]
    assert ["X-Mailgun-Spf", "Pass"] in json.loads(form["message-headers"])
    assert form["attachment-count"] == "2"
    assert json.loads(form["content-id-map"]) == {"<ii_77>": "attachment-1"}
    assert form.files["attachment-2"][0] == "précis.csv"


def test_mailgun_sends_a_form_without_files_urlencoded() -> None:
    """Only mails with files are multipart forms."""
    mail = mail_of(b"Subject: x\r\nContent-Type: text/html\r\n\r\n<p>Hi</p>")
    request = write(InboundFormat.MAILGUN, mail)
    assert header(request, "content-type") == "application/x-www-form-urlencoded"
    assert Form(request)["body-plain"] == "Hi"


def test_mailgun_mime_has_all_octets() -> None:
    """``body-mime`` keeps octets that are not UTF-8."""
    form = Form(write(InboundFormat.MAILGUN_MIME, mail_of(b"Subject: x\r\n\r\n\xff\r\n")))
    assert form.values["body-mime"].startswith(b"X-Mailgun-Incoming: Yes\r\n")
    assert form.values["body-mime"].endswith(b"Subject: x\r\n\r\n\xff\r\n")


def test_mailgun_store_names_urls() -> None:
    """A stored mail and its files are behind URLs of Mailgun's API."""
    form = Form(write(InboundFormat.MAILGUN_STORE))
    url = f"{BASE}/mailgun/v3/domains/app.test/messages/{mail_of().id}"
    assert form["message-url"] == url
    assert [file["url"] for file in json.loads(form["attachments"])] == [
        f"{url}/attachments/0",
        f"{url}/attachments/1",
    ]
    assert "attachment-count" not in form.values


def test_postmark_shows_the_delivered_address_as_a_blind_copy() -> None:
    """An address that no field names is in ``BccFull``, with the text after its plus sign."""
    provider = PROVIDERS[InboundFormat.POSTMARK]
    assert provider.write is not None
    mail = mail_of(recipients=("blind+7@app.test",))
    sent = json_of(provider.write(mail, route_of(InboundFormat.POSTMARK), MOMENT))
    assert sent["OriginalRecipient"] == "blind+7@app.test"
    assert sent["MailboxHash"] == "7"
    assert [one["Email"] for one in sent["BccFull"]] == ["blind+7@app.test"]
    assert sent["StrippedTextReply"] == "Café, yes"
    assert sent["FromFull"] == {"Email": "ana@s.test", "Name": "Ana Gómez", "MailboxHash": ""}
    assert sent["Attachments"][0] == {
        "Name": "dot.png",
        "Content": base64.b64encode(PICTURE).decode(),
        "ContentType": "image/png",
        "ContentLength": len(PICTURE),
        "ContentID": "ii_77",
    }
    names = [one["Name"] for one in sent["Headers"]]
    assert names.count("Received") == 2
    assert not {"From", "To", "Subject", "Date"} & set(names)
    assert sent["RawEmail"] == MAIL.decode().replace("\r\n", "\n")


def test_resend_has_facts_and_no_bodies() -> None:
    """The event names the mail and its files; blind copies are in two lists."""
    data = json_of(write(InboundFormat.RESEND))["data"]
    assert data["email_id"] == mail_of().id
    assert data["bcc"] == ["blind+7@app.test"]
    assert data["received_for"] == ["in@app.test", "blind+7@app.test"]
    assert [file["filename"] for file in data["attachments"]] == ["dot.png", "précis.csv"]
    assert not {"text", "html", "headers"} & set(data)


def test_brevo_has_one_uuid_for_each_recipient() -> None:
    """An item has a list of UUIDs, repeated header fields as lists, and tokens of files."""
    (item,) = json_of(write(InboundFormat.BREVO))["items"]
    assert len(set(item["Uuid"])) == 2
    assert len(item["Headers"]["Received"]) == 2
    assert item["Headers"]["Content-Type"] == "multipart/mixed"
    assert item["Headers"]["Bcc"] == "blind+7@app.test"
    assert item["ExtractedMarkdownMessage"] == "Café, yes"
    tokens = [brevo.read_token(file["DownloadToken"]) for file in item["Attachments"]]
    assert tokens == [(mail_of().id, 1), (mail_of().id, 2)]


def test_mailtrap_has_ids_only() -> None:
    """The event has a decimal id of 64 bits, and its time in milliseconds."""
    (event,) = json_of(write(InboundFormat.MAILTRAP))["events"]
    assert int(event["message_id"]) < 1 << 63
    assert event["timestamp"] == AT
    assert set(event) == {"event", "event_id", "timestamp", "inbox_id", "message_id", "from"}


def test_ses_has_the_mail_and_its_verdicts() -> None:
    """A notification has the whole mail, with the fields of SES on top."""
    verdicts = Verdicts(
        spf=InboundVerdict.SOFTFAIL, dmarc=InboundVerdict.FAIL, is_spam=True, spam_score=9.5
    )
    sent = json_of(write(InboundFormat.SES, mail_of(verdicts=verdicts)))
    message = json.loads(sent["Message"])
    assert message["receipt"]["recipients"] == ["in@app.test", "blind+7@app.test"]
    assert message["receipt"]["spfVerdict"] == {"status": "GRAY"}
    assert message["receipt"]["spamVerdict"] == {"status": "FAIL"}
    assert message["receipt"]["dmarcPolicy"] == "none"
    assert message["mail"]["destination"] == ["in@app.test", "bo@app.test"]
    assert message["mail"]["commonHeaders"]["subject"] == "Ré: Invoice 9"
    assert "cc" not in message["mail"]["commonHeaders"]
    assert message["content"].startswith("Return-Path: <bounce@s.test>\r\nReceived: from ")
    assert message["content"].endswith(MAIL.decode())


def test_ses_cuts_a_long_header() -> None:
    """Header fields above 10 KB are left out, and a flag says so."""
    head = "".join(f"X-{number}: {'x' * 500}\r\n" for number in range(40))
    sent = json_of(write(InboundFormat.SES, mail_of(f"{head}\r\nhi".encode())))
    mail = json.loads(sent["Message"])["mail"]
    assert mail["headersTruncated"] is True
    assert 10 < len(mail["headers"]) < 30


def verify_sns(message: Mapping[str, str], keys: tuple[str, ...]) -> None:
    """Check the signature of a message with the certificate of the route."""
    key = load_pem_x509_certificate(sns_key.write_certificate(SECRET)).public_key()
    assert isinstance(key, RSAPublicKey)
    text = ses.text_to_sign(message, keys)
    key.verify(base64.b64decode(message["Signature"]), text.encode(), PKCS1v15(), SHA1())


def test_sns_signs_notifications_and_confirmations() -> None:
    """The certificate of a route verifies both kinds of messages, and nothing that was changed."""
    sent = json_of(write(InboundFormat.SES))
    verify_sns(sent, ses.SIGNED)
    with pytest.raises(InvalidSignature):
        verify_sns({**sent, "Message": "{}"}, ses.SIGNED)
    opened = PROVIDERS[InboundFormat.SES].open
    assert opened is not None
    confirmation = json_of(opened(route_of(InboundFormat.SES), MOMENT))
    verify_sns(confirmation, ses.SIGNED_TO_CONFIRM)
    query = parse_qs(urlsplit(confirmation["SubscribeURL"]).query)
    assert query["Token"] == [confirmation["Token"]]
    assert ses.route_of(query["TopicArn"][0]) == "abcdefghijklm"
    assert sent["SigningCertURL"].startswith(f"{BASE}/sns/abcdefghijklm/SimpleNotificationService-")


def test_sns_sends_a_password_only_when_asked() -> None:
    """The first request of SNS has no Authorization."""
    route = route_of(InboundFormat.SES, user="u", password="p")
    request = write(InboundFormat.SES, route=route)
    assert "authorization" not in {name.lower() for name, _ in request.headers}
    assert request.authorization_if_asked == "Basic dTpw"


def test_the_text_that_sns_signs() -> None:
    """The text has the keys in the order of AWS (known digest)."""
    message = {
        "Type": "Notification",
        "MessageId": "11111111-2222-4333-8444-555555555555",
        "TopicArn": "arn:aws:sns:us-east-1:000000000000:in",
        "Subject": "Amazon SES Email Receipt Notification",
        "Message": '{"notificationType":"Received"}',
        "Timestamp": "2026-11-29T09:00:00.000Z",
        "SignatureVersion": "1",
    }
    digest = hashlib.sha256(ses.text_to_sign(message, ses.SIGNED).encode()).hexdigest()
    assert digest == "c2ce4d7a95851775a7cdeb26fa9f84667d8d682d63659cb3e30c1379703ced27"


def test_known_signatures() -> None:
    """Signatures are those that the libraries of the providers compute."""
    token = "a" * 50
    assert sign_with_hmac("signing-key-for-tests", "1795944000", token) == (
        "0fd5e9c930038739d6d3966e32d347eff935e33cc4392059c2b53ad01f54e50b"
    )
    body = b'{"events":[{"event":"inbound.message_received"}]}'
    assert sign_body_with_hmac("mt-secret-for-tests", body) == (
        "fd960d3d3cd30b079addf658997c6de6dd8f918d97fae2b25326c2c616a2f06e"
    )


def test_known_verifications() -> None:
    """What the tests verify is what the libraries of Svix and SendGrid sign."""
    at = datetime.fromtimestamp(AT // 1000, UTC)
    signature = Webhook(SECRET).sign(
        "msg_test1", at, '{"type":"email.received","data":{"email_id":"e1"}}'
    )
    assert signature == "v1,VRM0jCEPafOL9vuO5vskMGCi86u5wzAgZs/qgx4Kuck="
    body = b"\r\n".join(
        (
            b"--xYzZY",
            b'Content-Disposition: form-data; name="subject"',
            b"",
            b"Hi",
            b"--xYzZY--",
            b"",
        )
    )
    key = load_der_public_key(
        base64.b64decode(
            "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEPteijsZI7c5dW34lL2sqr7tEg1EUoks8qo9xD2SZO8JXEaNM3JI"
            "pCAtjnwmXf+t8qR7M4WSb/qithccrIGrefg=="
        )
    )
    assert isinstance(key, EllipticCurvePublicKey)
    known = base64.b64decode(
        "MEQCIF0qX0MHtCPLiD3KzMLt0fNPjd8V0V8Z4JfnOPnAZfaaAiA031XK2ogYT7/J/R9fNxazKmQ454d4hbJU0awPGwu4Ww=="
    )
    key.verify(known, b"1795944000" + body, ECDSA(SHA256()))
    assert write_multipart([("subject", "Hi")], (), "xYzZY")[1] == body


def verify_sendgrid(request: InboundRequest) -> None:
    """Check the signature of a security policy of SendGrid."""
    name = "X-Twilio-Email-Event-Webhook"
    key = load_der_public_key(base64.b64decode(verification_key(SECRET)))
    assert isinstance(key, EllipticCurvePublicKey)
    signed = header(request, f"{name}-Timestamp").encode() + request.body
    key.verify(base64.b64decode(header(request, f"{name}-Signature")), signed, ECDSA(SHA256()))


def verify_mailgun(request: InboundRequest) -> None:
    """Check the signature of Mailgun, and the age of its time stamp."""
    form = Form(request)
    text = form["timestamp"] + form["token"]
    found = hmac.new(SECRET.encode(), text.encode(), hashlib.sha256).hexdigest()
    assert len(form["token"]) == 50
    if form["signature"] != found:
        raise InvalidSignature
    if abs(int(form["timestamp"]) - AT // 1000) > 120:
        raise InvalidSignature


def verify_mailtrap(request: InboundRequest) -> None:
    """Check the signature of Mailtrap."""
    found = hmac.new(SECRET.encode(), request.body, hashlib.sha256).hexdigest()
    if header(request, "Mailtrap-Signature") != found:
        raise InvalidSignature


def verify_standard(request: InboundRequest) -> None:
    """Check a signature of Standard Webhooks, under the names of Svix too."""
    headers = {name.lower().replace("svix-", "webhook-"): value for name, value in request.headers}
    Webhook(SECRET).verify(request.body, headers)


SIGNED = {
    InboundFormat.SENDGRID: verify_sendgrid,
    InboundFormat.SENDGRID_RAW: verify_sendgrid,
    InboundFormat.MAILGUN: verify_mailgun,
    InboundFormat.MAILGUN_MIME: verify_mailgun,
    InboundFormat.MAILGUN_STORE: verify_mailgun,
    InboundFormat.MAILTRAP: verify_mailtrap,
    InboundFormat.SES: lambda request: verify_sns(json_of(request), ses.SIGNED),
    InboundFormat.RESEND: verify_standard,
    InboundFormat.MAILCHECK: verify_standard,
}
WRONG = (InvalidSignature, WebhookVerificationError)


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the library of Standard Webhooks read the time of the attempts."""
    import standardwebhooks.webhooks as library

    class Clock(library.datetime):  # type: ignore[misc, name-defined]
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            """Return the time of the attempts."""
            return cls.fromtimestamp(AT // 1000, tz)

    monkeypatch.setattr(library, "datetime", Clock)


@rows(*SIGNED)
def test_a_signature_is_valid_unless_it_has_a_fault(name: InboundFormat) -> None:
    """Each signature is verified, and a wrong one is refused."""
    SIGNED[name](write(name))
    wrong = replace(MOMENT, fault=InboundFault.WRONG_SIGNATURE)
    with pytest.raises(WRONG):
        SIGNED[name](write(name, moment=wrong))


@rows(*WRITTEN)
def test_faults_change_what_they_say(name: InboundFormat) -> None:
    """A format that can have a wrong signature or an old time stamp changes with it."""
    route = route_of(name, user="u", password="p")
    usual = write(name, route=route)
    for fault in (InboundFault.WRONG_SIGNATURE, InboundFault.OLD_TIME_STAMP):
        changed = write(name, route=route, moment=replace(MOMENT, fault=fault))
        can_differ = fault in PROVIDERS[name].faults
        # A signature with ECDSA is random.
        is_signed_randomly = name in (InboundFormat.SENDGRID, InboundFormat.SENDGRID_RAW)
        assert (changed != usual) == can_differ or is_signed_randomly, fault


@rows(*WRITTEN)
def test_a_retry_keeps_the_ids(name: InboundFormat) -> None:
    """A later attempt differs only in the signature and its time stamp."""
    later = replace(MOMENT, at=Instant(AT + MINUTE), number=2)
    first, second = write(name), write(name, moment=later)
    if name in (InboundFormat.SENDGRID, InboundFormat.SENDGRID_RAW, InboundFormat.RESEND):
        assert first.body == second.body
    elif name is InboundFormat.SES:
        assert json_of(first)["MessageId"] == json_of(second)["MessageId"]
        assert json_of(first)["Message"] == json_of(second)["Message"]
    elif name in (
        InboundFormat.MAILGUN,
        InboundFormat.MAILGUN_MIME,
        InboundFormat.MAILGUN_STORE,
    ):
        assert Form(first)["token"] != Form(second)["token"]
        assert Form(first)["Message-Id"] == Form(second)["Message-Id"]
    else:
        assert first.body == second.body
        assert first.url == second.url


def test_cloudflare_gets_the_envelope_in_the_query() -> None:
    """The handler of wrangler gets the mail as it is, and the envelope in the URL."""
    request = write(InboundFormat.CLOUDFLARE)
    assert request.url == "http://app.test/hook?x=1&from=bounce%40s.test&to=in%40app.test"
    assert request.body == MAIL


def test_rails_gets_the_fields_of_a_mail_server() -> None:
    """The relay of Action Mailbox finds the recipient of a blind copy in a field."""
    route = route_of(InboundFormat.RAILS, password="p")
    request = write(InboundFormat.RAILS, route=route)
    assert header(request, "content-type") == "message/rfc822"
    assert header(request, "authorization") == "Basic YWN0aW9ubWFpbGJveDpw"
    assert b"X-Original-To: in@app.test\r\n" in request.body
    assert request.body.endswith(MAIL)


def test_our_own_event_has_everything() -> None:
    """Our own JSON has the bodies, the reply, the files and the verdicts."""
    data = json_of(write(InboundFormat.MAILCHECK))["data"]
    assert data["envelope"]["rcptTo"] == ["in@app.test", "blind+7@app.test"]
    assert data["reply"] == "Café, yes"
    assert base64.b64decode(data["attachments"][0]["content"]) == PICTURE
    assert data["verdicts"]["spf"] == "pass"


def test_every_format_has_a_row() -> None:
    """All formats have a provider and a text on the reference page."""
    assert set(format_rows(BASE)) == set(InboundFormat)


@given(
    st.one_of(
        st.binary(max_size=400),
        st.lists(
            st.sampled_from(
                (
                    *("From: ", "To: ", "Subject: ", "=?utf-8?q?=FF?=", "\r\n", "\n", "\r\n\r\n"),
                    *("a@b.test", '"', "<", ">", "\udcff", "Content-Type: ", "text/html"),
                    *("multipart/mixed; boundary=b", "--b", "charset=utf-7", "\0", "é"),
                    *("Content-ID: <x\ny>", "Content-Disposition: attachment; filename=", "; "),
                )
            ),
            max_size=20,
        ).map(lambda pieces: "".join(pieces).encode("utf-8", "surrogateescape")),
    ),
    st.sampled_from(WRITTEN),
)
def test_any_bytes_are_written(raw_message: bytes, name: InboundFormat) -> None:
    """No mail makes a format fail, and no header of a request gets a line break."""
    mail = mail_of(raw_message, helo_name="x\r\ny", envelope_sender="")
    request = write(name, mail)
    assert all(value.isascii() and value.isprintable() for _, value in request.headers)
    assert request == write(name, mail) or name in (
        InboundFormat.SENDGRID,
        InboundFormat.SENDGRID_RAW,
    )
