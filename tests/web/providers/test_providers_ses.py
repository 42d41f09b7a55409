"""The APIs of Amazon SES, and the signatures of requests to them."""

import base64
from typing import Any

from mailcheck.web.providers.provider import AskRoute, Posting
from mailcheck.web.providers.ses import SES
from mailcheck.web.providers.ses_query import QUESTIONS
from mailcheck.web.providers.signatures import Credentials, parse_credentials, sign
from tests.house import House
from tests.table import rows
from tests.web.provider_requests import ask, headers_for, newest, post, raw_mail, received, sample

SEND = "/providers/ses/v2/email/outbound-emails"
BULK = "/providers/ses/v2/email/outbound-bulk-emails"
QUERY = "/providers/ses/"
RAW = b"From: Shop <shop@example.com>\r\nTo: you@customer.example\r\nSubject: Raw\r\n\r\nbody\r\n"


def test_the_signature_is_that_of_the_standard() -> None:
    """A signature of AWS's test suite ("get-vanilla-query-order-key-case") is computed again."""
    posting = Posting(
        "GET",
        "/?Param2=value2&Param1=value1",
        {
            "host": "example.amazonaws.com",
            "x-amz-date": "20150830T123600Z",
            "authorization": "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/"
            "aws4_request, SignedHeaders=host;x-amz-date, Signature="
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        },
        b"",
    )
    found = parse_credentials(posting.headers)
    secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
    assert sign(posting, found, secret) == found.signature


@rows(SEND, QUERY)
def test_a_changed_request_is_rejected(house: House, path: str) -> None:
    """A body or a date that was not signed is rejected, although the key is right."""
    answer = post(house, path, headers={"x-amz-date": "20261122T120000Z"})
    assert answer.status == 403
    assert b"ignature" in answer.body
    assert received(house) == []


def test_an_unsigned_request_is_told_to_sign(house: House) -> None:
    """A Bearer token is not a signature, and the error says what to set."""
    answer = post(house, SEND, headers={"Authorization": f"Bearer {house.key}"})
    assert answer.headers["x-amzn-errortype"] == "MissingAuthenticationTokenException"
    assert "access key id" in answer.json["message"]


def test_all_fields_are_in_the_mail(house: House) -> None:
    """Copies, reply-to, headers, tags, files and the configuration set are in the mail."""
    value = sample(SEND, "you@customer.example")
    value["Destination"] |= {
        "CcAddresses": ["cc@customer.example"],
        "BccAddresses": ["b@customer.example"],
    }
    value |= {
        "ReplyToAddresses": ["help@example.com"],
        "EmailTags": [{"Name": "kind", "Value": "order"}],
        "ConfigurationSetName": "main",
    }
    one = base64.b64encode(b"one").decode()
    value["Content"]["Simple"] |= {
        "Headers": [{"Name": "X-Own", "Value": "1"}],
        "Attachments": [
            {"FileName": "a.txt", "RawContent": one},
            {
                "FileName": "l.png",
                "RawContent": one,
                "ContentType": "image/png",
                "ContentDisposition": "INLINE",
                "ContentId": "logo",
            },
        ],
    }
    answer = post(house, SEND, value)
    messages = received(house)
    assert {one["deliveryId"] for one in messages} == {answer.json["MessageId"]}
    assert {one["to"].partition("@")[0] for one in messages} == {"you", "cc", "b"}
    mail = raw_mail(house, messages[0])
    assert (mail["X-SES-MESSAGE-TAGS"], mail["X-SES-CONFIGURATION-SET"]) == ("kind=order", "main")
    assert (mail["Reply-To"], mail["X-Own"]) == ("help@example.com", "1")
    assert {one["contentId"] for one in messages[0]["attachments"]} == {"logo", None}


def test_a_raw_mail_is_stored_as_it_is(house: House) -> None:
    """A raw mail goes to the destination, or to the recipients of its header."""
    raw = {"Raw": {"Data": base64.b64encode(RAW).decode()}}
    elsewhere = {"ToAddresses": ["ann@customer.example"]}
    assert post(house, SEND, {"Content": raw}).status == 200
    assert post(house, SEND, {"Content": raw, "Destination": elsewhere}).status == 200
    messages = received(house)
    assert [one["to"] for one in messages] == ["you@customer.example", "ann@customer.example"]
    shown = house.get(f"/inbox/messages/{messages[0]['id']}/raw").json["raw"]
    assert shown.encode() == RAW


def test_a_bulk_has_an_outcome_for_each_mail(house: House) -> None:
    """Each entry has its own values and its own result."""
    value = sample(BULK, "you@customer.example")
    own = {"ReplacementTemplate": {"ReplacementTemplateData": '{"name": "Ann"}'}}
    fault = {"ToAddresses": ["x+fault.data-451@customer.example"]}
    value["BulkEmailEntries"][0]["ReplacementEmailContent"] = own
    value["BulkEmailEntries"].append({"Destination": fault})
    results = post(house, BULK, value).json["BulkEmailEntryResults"]
    assert [one["Status"] for one in results] == ["SUCCESS", "FAILED"]
    (message,) = received(house)
    assert '"name": "Ann"' in message["text"]


def test_the_query_api_sends_raw_and_templated_mail(house: House) -> None:
    """All three actions of version 1 store a mail and answer with its id in XML."""
    raw = {
        "Action": "SendRawEmail",
        "RawMessage.Data": base64.b64encode(RAW).decode(),
        "Destinations.member.1": "ann@customer.example",
    }
    templated = {
        "Action": "SendTemplatedEmail",
        "Source": "shop@example.com",
        "Destination.ToAddresses.member.1": "you@customer.example",
        "Template": "welcome",
        "TemplateData": '{"name": "Ann"}',
        "Tags.member.1.Name": "kind",
        "Tags.member.1.Value": "order",
    }
    for value in (None, raw, templated):
        answer = post(house, QUERY, value)
        assert answer.status == 200
        assert newest(house)["deliveryId"].encode() in answer.body
    assert [one["subject"] for one in received(house)] == ["Your order", "Raw", ""]
    assert raw_mail(house, newest(house))["X-SES-MESSAGE-TAGS"] == "kind=order"


def test_an_error_of_the_query_api_is_xml(house: House) -> None:
    """A value with characters of XML is escaped in the message."""
    answer = post(house, QUERY, {"Action": "<Delete>&"})
    assert answer.status == 400
    assert b"<Code>InvalidParameterValue</Code>" in answer.body
    assert b"&lt;Delete&gt;&amp;" in answer.body


IDENTITY = {
    "IdentityType": "DOMAIN",
    "IdentityName": "mailcheck.example",
    "SendingEnabled": True,
    "VerificationStatus": "SUCCESS",
}
VERIFIED = {"VerifiedForSendingStatus": True}
ANSWERS: dict[tuple[str, str], dict[str, Any]] = {
    ("GET", "/v2/email/account"): {
        "SendingEnabled": True,
        "SendQuota": {"Max24HourSend": 50000.0, "MaxSendRate": 14.0, "SentLast24Hours": 0.0},
    },
    ("GET", "/v2/email/identities"): {"EmailIdentities": [IDENTITY]},
    ("POST", "/v2/email/list-identities"): {"EmailIdentities": [IDENTITY]},
    ("POST", "/v2/email/list-configuration-sets"): {"ConfigurationSets": []},
    ("POST", "/v2/email/identities"): {"IdentityType": "EMAIL_ADDRESS", **VERIFIED},
    ("GET", "/v2/email/identities/<identity>"): {"IdentityType": "DOMAIN", **VERIFIED},
    ("GET", "/v2/email/configuration-sets"): {"ConfigurationSets": []},
    ("GET", "/v2/email/templates"): {"TemplatesMetadata": []},
    ("GET", "/v2/email/suppression/addresses"): {"SuppressedDestinationSummaries": []},
}


def test_questions_of_version_2_are_answered(house: House) -> None:
    """What senders ask before the first mail has an answer with which they send."""
    asked = [one for one in SES.routes if isinstance(one, AskRoute)]
    assert {(one.method, one.path) for one in asked} == set(ANSWERS)
    for (method, path), expected in ANSWERS.items():
        target = f"/providers/ses{path}".replace("<identity>", "shop.example")
        answer = ask(house, target) if method == "GET" else post(house, target)
        assert answer.status == 200, answer.body
        assert {name: answer.json[name] for name in expected} == expected
        assert len(answer.headers["x-amzn-requestid"]) == 36
    assert received(house) == []


def test_a_path_is_encoded_twice_in_a_signature(house: House) -> None:
    """An address in a path is verified as the SDKs sign it (Signature Version 4, canonical URI)."""
    path = "/providers/ses/v2/email/identities/shop%40example.com"
    assert ask(house, path).json["IdentityType"] == "EMAIL_ADDRESS"
    posting = Posting("GET", "/a%40b", {"x-amz-date": "20261121T120000Z"}, b"")
    found = Credentials("k", ("20261121", "eu-west-1", "ses", "aws4_request"), ("x-amz-date",), "")
    expected = "214903fca7f31ac6360f213aad1f34523c6f2e1a3b7c39a1017f39039c602996"
    assert sign(posting, found, "k") == expected


def test_a_question_needs_a_signature(house: House) -> None:
    """A question that another key has signed is rejected, and one without a signature too."""
    path = "/providers/ses/v2/email/account"
    assert ask(house, path, key="unknown").status == 403
    headers = headers_for(path, house.key)  # as if it was a POST
    answer = house.open(path, headers=headers).answer()
    assert answer.headers["x-amzn-errortype"] == "InvalidSignatureException"
    assert ask(house, "/providers/ses/v2/email/tenants").status == 404


RESULTS = {
    "GetAccountSendingEnabled": "<Enabled>true</Enabled>",
    "GetIdentityDkimAttributes": "<DkimAttributes><entry><key>&lt;a&gt;</key><value>"
    "<DkimEnabled>false</DkimEnabled><DkimVerificationStatus>Success</DkimVerificationStatus>"
    "</value></entry></DkimAttributes>",
    "GetIdentityVerificationAttributes": "<VerificationAttributes><entry><key>&lt;a&gt;</key>"
    "<value><VerificationStatus>Success</VerificationStatus></value></entry>"
    "</VerificationAttributes>",
    "GetSendQuota": "<Max24HourSend>50000.0</Max24HourSend><MaxSendRate>14.0</MaxSendRate>"
    "<SentLast24Hours>0.0</SentLast24Hours>",
    "GetSendStatistics": "<SendDataPoints></SendDataPoints>",
    "ListConfigurationSets": "<ConfigurationSets></ConfigurationSets>",
    "ListIdentities": "<Identities><member>mailcheck.example</member></Identities>",
    "ListTemplates": "<TemplatesMetadata></TemplatesMetadata>",
    "ListVerifiedEmailAddresses": "<VerifiedEmailAddresses></VerifiedEmailAddresses>",
    "VerifyDomainIdentity": "<VerificationToken>mailcheck</VerificationToken>",
    "VerifyEmailAddress": "",
    "VerifyEmailIdentity": "",
}


def test_questions_of_version_1_are_answered(house: House) -> None:
    """Each question has its result as XML, and sends no mail."""
    assert set(RESULTS) == set(QUESTIONS)
    for action, result in RESULTS.items():
        answer = post(house, QUERY, {"Action": action, "Identities.member.1": "<a>"})
        assert answer.status == 200
        whole = f"<{action}Result>{result}</{action}Result>"
        assert whole in answer.body.decode()
        assert answer.headers["x-amzn-requestid"] in answer.body.decode()
    addresses = {"Action": "ListIdentities", "IdentityType": "EmailAddress"}
    assert b"<Identities></Identities>" in post(house, QUERY, addresses).body
    many = {f"Identities.member.{number}": "a" for number in range(101)}
    assert post(house, QUERY, {"Action": "GetIdentityDkimAttributes", **many}).status == 400
    assert received(house) == []


VERIFYING = b"From: <invalid@invalid>\r\nTo: <invalid@invalid>\r\n Subject: Invalid\r\n\r\nInvalid"


@rows(
    (SEND, {"FromEmailAddress": "invalid@invalid", "Content": {"Raw": {}}}, "MessageRejected"),
    (SEND, {"FromEmailAddress": "A <a@mail.INVALID>"}, "MessageRejected"),
    (BULK, {"FromEmailAddress": "invalid@invalid"}, "MessageRejected"),
    (QUERY, {"Source": "invalid@invalid"}, "MessageRejected"),
    (QUERY, {"Source": "invalid@invalid", "Action": "SendRawEmail"}, "MessageRejected"),
)
def test_a_sender_that_cannot_exist_is_not_verified(
    house: House, path: str, fields: dict[str, Any], expected: str
) -> None:
    """Nodemailer verifies an account by a mail that SES rejects: it is not stored here either."""
    raw = base64.b64encode(VERIFYING).decode()
    if "Raw" in fields.get("Content", {}):
        fields = {**fields, "Content": {"Raw": {"Data": raw}}}
    value = {**sample(path, "invalid@invalid"), "RawMessage.Data": raw, **fields}
    answer = post(house, path, value)
    assert answer.status == 400
    assert expected in f"{answer.headers}{answer.body.decode()}"
    assert received(house) == []


def test_a_bulk_of_version_1_has_a_status_for_each_destination(house: House) -> None:
    """Each destination has its own values, and its own result in XML."""
    value = {
        "Action": "SendBulkTemplatedEmail",
        "Source": "shop@example.com",
        "Template": "welcome",
        "DefaultTemplateData": '{"name": "all"}',
        "DefaultTags.member.1.Name": "kind",
        "DefaultTags.member.1.Value": "order",
        "Destinations.member.1.Destination.ToAddresses.member.1": "ann@customer.example",
        "Destinations.member.1.ReplacementTemplateData": '{"name": "Ann"}',
        "Destinations.member.2.Destination.ToAddresses.member.1": "bob@customer.example",
        "Destinations.member.3.Destination.CcAddresses.member.1": "x+fault.data-451@c.example",
    }
    answer = post(house, QUERY, value).body.decode()
    assert [one.partition("<")[0] for one in answer.split("<member><Status>")[1:]] == [
        *("Success", "Success", "Failed")
    ]
    texts = {one["to"]: one["text"] for one in received(house)}
    assert '"name": "Ann"' in texts["ann@customer.example"]
    assert '"name": "all"' in texts["bob@customer.example"]
    assert raw_mail(house, received(house)[0])["X-SES-MESSAGE-TAGS"] == "kind=order"
    for name, given in (("Destinations", {}), ("Template", {"Template": None})):
        bad = {key: one for key, one in value.items() if not key.startswith("Destinations")}
        bad = {key: one for key, one in {**bad, **given}.items() if one is not None}
        answer = post(house, QUERY, bad).body.decode()
        assert name in answer


def test_bounces_go_to_the_address_that_the_request_names(house: House) -> None:
    """ReturnPath, or FeedbackForwardingEmailAddress, is the sender of the envelope."""
    raw = {"Raw": {"Data": base64.b64encode(RAW).decode()}}
    feedback = {"FeedbackForwardingEmailAddress": "bounces@example.com"}
    post(house, SEND, sample(SEND, "you@customer.example") | feedback)
    post(house, SEND, {"Content": raw, **feedback})
    query = sample(QUERY, "you@customer.example")
    post(house, QUERY, query | {"ReturnPath": "bounces@example.com"})
    senders = [one["envelope"]["mailFrom"] for one in received(house)]
    assert senders == ["bounces@example.com"] * 3


def test_headers_of_one_mail_of_a_bulk_replace_those_of_all(house: House) -> None:
    """ReplacementHeaders are in the mail, in place of those of the template with the same name."""
    value = sample(BULK, "you@customer.example")
    value["DefaultContent"]["Template"]["Headers"] = [
        {"Name": "X-A", "Value": "1"},
        {"Name": "X-B", "Value": "2"},
    ]
    value["BulkEmailEntries"][0]["ReplacementHeaders"] = [{"Name": "x-b", "Value": "3"}]
    assert post(house, BULK, value).json["BulkEmailEntryResults"][0]["Status"] == "SUCCESS"
    mail = raw_mail(house, received(house)[0])
    assert (mail["X-A"], mail.get_all("X-B")) == ("1", ["3"])
