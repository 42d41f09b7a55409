"""Does the calls of boto3 for both versions of SES that send mail, and the questions of senders."""

import os
from typing import Any

import boto3
from botocore.config import Config
from calls import call, finish, received


def client(version: str) -> Any:
    """Return the client of a version of SES."""
    return boto3.client(
        version,
        endpoint_url=f"{os.environ['RECORDER']}/providers/ses",
        region_name="eu-west-1",
        aws_access_key_id=os.environ["API_KEY"],
        aws_secret_access_key=os.environ["API_KEY"],
        config=Config(retries={"max_attempts": 0}),
    )


ses, sesv2 = client("ses"), client("sesv2")
FROM = "Shop <shop@example.com>"


def to(name: str) -> str:
    """Return a recipient."""
    return f"{name}.boto3@customer.example"


def raw(name: str) -> dict[str, bytes]:
    """Return a whole mail."""
    text = f"From: shop@example.com\r\nTo: {to(name)}\r\nSubject: {name}\r\n\r\n{name}\r\n"
    return {"Data": text.encode()}


def is_received(name: str, answer: Any) -> None:
    """Check that a mail is in the inbox, under the id of the answer."""
    assert received(to(name))["deliveryId"] == answer["MessageId"]
    assert answer["ResponseMetadata"]["RequestId"]


def send_email() -> None:
    """Send a mail by its fields."""
    message = {"Subject": {"Data": "one"}, "Body": {"Text": {"Data": "one"}}}
    destination = {"ToAddresses": [to("one")]}
    answer = ses.send_email(
        Source=FROM, Destination=destination, Message=message, ReturnPath="back@example.com"
    )
    is_received("one", answer)
    assert received(to("one"))["envelope"]["mailFrom"] == "back@example.com"


def send_raw_email() -> None:
    """Send a whole mail."""
    is_received("two", ses.send_raw_email(RawMessage=raw("two")))


def send_templated_email() -> None:
    """Send a mail from a template."""
    answer = ses.send_templated_email(
        Source=FROM,
        Destination={"ToAddresses": [to("three")]},
        Template="welcome",
        TemplateData='{"a": 1}',
    )
    is_received("three", answer)


def send_bulk_templated_email() -> None:
    """Send two mails from a template."""
    answer = ses.send_bulk_templated_email(
        Source=FROM,
        Template="welcome",
        DefaultTemplateData='{"a": 1}',
        Destinations=[{"Destination": {"ToAddresses": [to(name)]}} for name in ("four", "five")],
    )
    assert [one["Status"] for one in answer["Status"]] == ["Success", "Success"]
    assert received(to("five"))["deliveryId"] == answer["Status"][1]["MessageId"]


def verified(answer: Any) -> None:
    """Check that an identity is verified."""
    (facts,) = answer["VerificationAttributes"].values()
    assert facts["VerificationStatus"] == "Success"


def dkim_verified(answer: Any) -> None:
    """Check that DKIM of an identity is verified."""
    (facts,) = answer["DkimAttributes"].values()
    assert facts["DkimVerificationStatus"] == "Success"


def equals(actual: object, expected: object) -> None:
    """Check a value."""
    assert actual == expected, actual


IDENTITIES = {"Identities": ["example.com"]}

call("ses.send_email", send_email)
call("ses.send_raw_email", send_raw_email)
call("ses.send_templated_email", send_templated_email)
call("ses.send_bulk_templated_email", send_bulk_templated_email)
call("ses.get_send_quota", lambda: equals(ses.get_send_quota()["MaxSendRate"], 14.0))
call("ses.get_send_statistics", lambda: equals(ses.get_send_statistics()["SendDataPoints"], []))
call(
    "ses.get_account_sending_enabled",
    lambda: equals(ses.get_account_sending_enabled()["Enabled"], True),
)
call("ses.list_identities", lambda: equals(len(ses.list_identities()["Identities"]), 1))
call(
    "ses.list_verified_email_addresses",
    lambda: equals(ses.list_verified_email_addresses()["VerifiedEmailAddresses"], []),
)
call(
    "ses.get_identity_verification_attributes",
    lambda: verified(ses.get_identity_verification_attributes(**IDENTITIES)),
)
call(
    "ses.get_identity_dkim_attributes",
    lambda: dkim_verified(ses.get_identity_dkim_attributes(**IDENTITIES)),
)
call("ses.verify_email_identity", lambda: ses.verify_email_identity(EmailAddress="a@example.com"))
call("ses.verify_email_address", lambda: ses.verify_email_address(EmailAddress="a@example.com"))
call(
    "ses.verify_domain_identity",
    lambda: ses.verify_domain_identity(Domain="example.com")["VerificationToken"],
)
call(
    "ses.list_configuration_sets",
    lambda: equals(ses.list_configuration_sets()["ConfigurationSets"], []),
)
call("ses.list_templates", lambda: equals(ses.list_templates()["TemplatesMetadata"], []))
call(
    "sesv2.send_email",
    lambda: is_received("six", sesv2.send_email(Content={"Raw": raw("six")})),
)
call(
    "sesv2.get_account",
    lambda: equals(sesv2.get_account()["SendQuota"]["Max24HourSend"], 50_000.0),
)
call(
    "sesv2.list_email_identities",
    lambda: equals(len(sesv2.list_email_identities()["EmailIdentities"]), 1),
)
finish(
    f"ses.{name}"
    for name in dir(ses)
    if name.startswith("send_") and "_email" in name[5:]
    if name != "send_custom_verification_email"
)
