"""Tests of a program that sends mail; run them in parallel with ``pytest -n 4``.

MAILCHECK_URL and MAILCHECK_API_KEY name the inbox, SMTP_PORT the port of its mail server.
"""

from itertools import islice

import pytest


def times(count):
    """Repeat a test, so that four workers run tests in parallel."""
    return pytest.mark.parametrize("time", range(count))


def sign_up(shop, address):
    """Sign up at the shop and confirm the address."""
    shop.post("/sign-up", data={"email": address.email})
    return shop.get(address.wait().link)


@times(8)
def test_the_link_confirms(shop, mail_address, time):
    shop.post("/sign-up", data={"email": mail_address.email})
    mail = mail_address.wait(timeout=20, subject="confirm")
    assert mail.link.startswith("http://localhost/confirm?token=")
    assert mail_address.email in shop.get(mail.link).text


@times(8)
def test_the_code_confirms(shop, mail_address, time):
    shop.post("/sign-up", data={"email": mail_address.email})
    data = {"email": mail_address.email, "code": mail_address.wait().code}
    assert "Welcome" in shop.post("/code", data=data).text


@times(3)
def test_a_new_code_replaces_the_first(shop, mail_address, time):
    shop.post("/sign-up", data={"email": mail_address.email})
    first = mail_address.wait()
    shop.post("/sign-up", data={"email": mail_address.email})
    second = mail_address.wait()  # the next message; a message is not returned twice
    for mail, status in ((first, 400), (second, 200)):
        data = {"email": mail_address.email, "code": mail.code}
        assert shop.post("/code", data=data).status_code == status


@times(3)
def test_a_customer_can_choose_a_new_password(shop, mail_address, time):
    sign_up(shop, mail_address)
    shop.post("/reset", data={"email": mail_address.email})
    assert shop.get(mail_address.wait(subject="password").link).status_code == 200


@times(5)
def test_a_stranger_gets_no_mail(shop, mail_address, time):
    shop.post("/reset", data={"email": mail_address.email})
    mail_address.expect_none(seconds=1)


@times(3)
def test_an_order_sends_two_mails(shop, mail_address, time):
    shop.post("/order", data={"email": mail_address.email})
    ordered, on_its_way = islice(mail_address.events(timeout=30), 2)  # each message as it arrives
    assert "on its way" in on_its_way.subject
    (invoice,) = ordered.attachments
    assert invoice.filename == "invoice.txt"
    assert b"12.50 EUR" in invoice.content
