"""Header fields that providers put on top of a mail."""

from email.utils import formatdate

from mailcheck.checks.content.decoding import flatten_controls
from mailcheck.core.inbound import InboundMail
from mailcheck.core.instants import SECOND

OWN_NAME = "mx.mailcheck.example"
"""Name of the receiving server in header fields of formats that have no other one."""


def mail_date(mail: InboundMail) -> str:
    """Return the time of arrival as a date of RFC 5322 in UTC."""
    return formatdate(mail.received_at // SECOND).replace("-0000", "+0000")


def field_line(name: str, value: str) -> bytes:
    """Return a header field in one line. Line breaks in the value become blanks."""
    return f"{name}: {flatten_controls(value)}\r\n".encode("utf-8", "replace")


def on_top(raw_message: bytes, *fields: tuple[str, str]) -> bytes:
    """Return a mail with fields before its own."""
    return b"".join(field_line(name, value) for name, value in fields) + raw_message


def received_from(mail: InboundMail, by: str, identifier: str) -> str:
    """Return the value of a field Received (RFC 5321 4.4)."""
    recipient = f" for {mail.recipients[0]}" if len(mail.recipients) == 1 else ""
    return (
        f"from {mail.helo_name} ({mail.helo_name} [{mail.client_ip}]) by {by}"
        f" with SMTP id {identifier}{recipient}; {mail_date(mail)}"
    )


SPF_COMMENTS = {
    "pass": "sender allowed",
    "fail": "sender not allowed",
    "softfail": "sender discouraged",
}


def received_spf(mail: InboundMail, receiver: str) -> str:
    """Return the value of a field Received-SPF (RFC 7208 9.1)."""
    result = mail.verdicts.spf.value
    comment = SPF_COMMENTS.get(result, "no result")
    return (
        f"{result} ({comment}) identity=mailfrom; client-ip={mail.client_ip};"
        f" helo={mail.helo_name}; envelope-from={mail.envelope_sender}; receiver={receiver}"
    )
