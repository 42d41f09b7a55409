"""A suite of a project that uses pytest-mailpit."""

import os
import smtplib
import threading
from email.message import EmailMessage

import pytest
from pytest_mailpit import Chaos, MailpitAssertionError, MailpitClient

PORT = int(os.environ["SMTP_PORT"])


def send(to: str, subject: str = "Welcome") -> None:
    """Send a mail, as the software under test does."""
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "shop@example.com", to, subject
    message.set_content("Your code is 482913. Open https://shop.example/confirm?t=7f3a")
    message.add_alternative(
        '<p style="display:flex">Your code is 482913. '
        '<a href="https://shop.example/confirm?t=7f3a">Confirm</a></p>',
        subtype="html",
    )
    message.add_attachment(b"hello", maintype="text", subtype="plain", filename="a.txt")
    with smtplib.SMTP("127.0.0.1", PORT, timeout=30) as smtp:
        smtp.sendmail("shop@example.com", [to, "hidden@example.com"], message.as_bytes())


def test_a_sign_up(mailpit: MailpitClient) -> None:
    """A wait gives the only mail, with its code, link and attachment."""
    since = mailpit.server_time()
    threading.Timer(0.5, send, ("ann@example.com",)).start()
    message = mailpit.wait_for_message(recipient="ann@example.com", since=since, timeout=20)
    assert message.code() == "482913"
    assert message.link("confirm") == "https://shop.example/confirm?t=7f3a"
    file = message.attachment("*.txt")
    assert mailpit.get_attachment(file) == b"hello"
    assert [one.address for one in message.bcc] == ["hidden@example.com"]
    assert mailpit.get_headers(message.id)["Subject"] == ["Welcome"]
    assert b"Subject: Welcome" in mailpit.get_raw(message.id)
    assert 0 < message.check_html().supported < 100
    assert message.assert_html_support(at_least=20)
    assert mailpit.is_ready()


def test_searches_and_deletion(mailpit: MailpitClient) -> None:
    """Mails are found by each criterion, and deleted."""
    send("bob@example.com", "Hello Bob")
    send("cy@example.com", "Hello Cy")
    found = mailpit.wait_for_messages(2, "subject:hello", timeout=20)
    assert [one.subject for one in found] == ["Hello Bob", "Hello Cy"]
    assert len(mailpit.search_all('addressed:"bob@example.com"')) == 1
    assert len(mailpit.search_all("subject:hello -subject:bob")) == 1
    mailpit.set_tags([found[0].id], ["checkout", "v1.2"])
    assert [one.subject for one in mailpit.search_all("tag:checkout")] == ["Hello Bob"]
    mailpit.set_tags([found[0].id], ["v1.2"])
    assert mailpit.get_message(found[0].id).tags == ("v1.2",)
    mailpit.mark_read([one.id for one in found], read=False)
    mailpit.delete_messages([found[0].id])
    mailpit.assert_no_message(subject="Hello Bob", within=0.5)
    mailpit.delete_search("subject:hello")
    assert mailpit.search("subject:hello").messages == ()


def test_tags(mailpit: MailpitClient) -> None:
    """Tags are set, replaced, found and removed; those of the recipients stay."""
    send("gil+orders@example.com", "Tagged")
    message = mailpit.wait_for_message(subject="Tagged", timeout=20)
    assert message.tags == ("orders",)
    for tags in (["failed"], [*message.tags, "nightly run"]):
        mailpit.set_tags([message.id], tags)
    assert mailpit.get_message(message.id).tags == ("nightly run", "orders")
    assert [one.id for one in mailpit.search_all('tag:"nightly run"')] == [message.id]
    mailpit.set_tags([message.id], [])
    assert mailpit.get_message(message.id).tags == ("orders",)


def test_no_mail(mailpit: MailpitClient) -> None:
    """A wait for mail that does not come fails, and lists what came."""
    send("dan@example.com")
    with pytest.raises(MailpitAssertionError, match="none arrived"):
        mailpit.wait_for_message(recipient="eve@example.com", timeout=0.5)


def test_chaos(mailpit_chaos: Chaos) -> None:
    """Rejected recipients raise in the software under test."""
    mailpit_chaos.reject_recipients(452)
    with pytest.raises(smtplib.SMTPRecipientsRefused):
        send("fay@example.com")
    mailpit_chaos.reset()
    send("fay@example.com")
