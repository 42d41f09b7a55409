"""The API of Postmark."""

import json

from tests.house import House
from tests.web.provider_requests import headers_for, post, raw_mail, received, with_fields

EMAIL, BATCH = "/providers/postmark/email", "/providers/postmark/email/batch"


def test_all_fields_are_in_the_mail(house: House) -> None:
    """Names with commas, copies, tags, metadata, headers and files are in mail and envelope."""
    value = with_fields(
        EMAIL,
        To='"Doe, Jane" <jane@customer.example>, you@customer.example',
        Cc="cc@customer.example",
        Bcc="bcc@customer.example",
        ReplyTo="help@example.com",
        Tag="welcome",
        Metadata={"user": "7", "plan": 3},
        MessageStream="outbound",
        Headers=[{"Name": "X-A", "Value": "1"}],
        Attachments=[
            {"Name": "a.txt", "Content": "b25l", "ContentType": "text/plain"},
            {"Name": "l.png", "Content": "AA==", "ContentType": "image/png", "ContentID": "cid:l"},
        ],
    )
    answer = post(house, EMAIL, value).json
    assert answer["To"] == '"Doe, Jane" <jane@customer.example>, you@customer.example'
    assert (answer["Cc"], answer["Bcc"]) == ("cc@customer.example", "bcc@customer.example")
    messages = received(house)
    assert {one["deliveryId"] for one in messages} == {answer["MessageID"]}
    assert len(messages) == 4
    mail = raw_mail(house, messages[0])
    assert (mail["X-PM-Tag"], mail["X-PM-Metadata-user"]) == ("welcome", "7")
    assert (mail["X-PM-Metadata-plan"], mail["X-A"], mail["Reply-To"]) == (
        "3",
        "1",
        "help@example.com",
    )
    assert {one["contentId"] for one in messages[0]["attachments"]} == {None, "l"}


def test_each_mail_of_a_batch_has_its_outcome(house: House) -> None:
    """Invalid mails and faults reject only their own mail, and the status is 200."""
    fault = with_fields(EMAIL, To="x+fault.data-451@customer.example")
    answer = post(
        house,
        BATCH,
        [with_fields(EMAIL), with_fields(EMAIL, To="nobody"), fault, with_fields(EMAIL)],
    )
    assert [one["ErrorCode"] for one in answer.json] == [0, 300, 500, 0]
    assert len(received(house)) == 2
    assert post(house, BATCH, []).json["ErrorCode"] == 300
    assert post(house, BATCH, {"a": 1}).json["ErrorCode"] == 300


def test_a_batch_with_slow_mails_is_answered_once_late(house: House) -> None:
    """The delays of a batch do not add up: all mails are stored, and the longest delay counts."""
    slow = with_fields(EMAIL, To="x+fault.slow-5@customer.example")
    body = json.dumps([slow, with_fields(EMAIL), slow]).encode()
    pending = house.open(BATCH, "POST", data=body, headers=headers_for(BATCH, house.key))
    assert len(received(house)) == 3
    assert not pending.is_answered
    house.pass_time(5)
    assert [one["ErrorCode"] for one in pending.answer().json] == [0, 0, 0]


def test_a_template_is_shown_by_its_model(house: House) -> None:
    """A template, which exists at Postmark only, gives a text with its alias and model."""
    path = f"{EMAIL}/withTemplate"
    assert post(house, path).status == 200
    (message,) = received(house)
    assert "welcome" in message["text"]
    assert '"a": 1' in message["text"]
    missing = {"From": "a@b.de", "To": "c@d.de", "TemplateId": 1}
    assert "TemplateModel" in post(house, path, missing).json["Message"]
