"""The APIs of Amazon SES, and the signatures of requests to them."""

import base64

import pytest

from mailcheck.web.providers.provider import Posting
from mailcheck.web.providers.signatures import parse_credentials, sign
from tests.house import House
from tests.web.provider_requests import post, raw_mail, received, sample

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


@pytest.mark.parametrize("path", [SEND, QUERY])
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
        assert received(house)[-1]["deliveryId"].encode() in answer.body
    assert [one["subject"] for one in received(house)] == ["Your order", "Raw", ""]
    assert raw_mail(house, received(house)[-1])["X-SES-MESSAGE-TAGS"] == "kind=order"


def test_an_error_of_the_query_api_is_xml(house: House) -> None:
    """A value with characters of XML is escaped in the message."""
    answer = post(house, QUERY, {"Action": "<Delete>&"})
    assert answer.status == 400
    assert b"<Code>InvalidParameterValue</Code>" in answer.body
    assert b"&lt;Delete&gt;&amp;" in answer.body
