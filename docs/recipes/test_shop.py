"""Tests of a program that sends mail; run them in parallel with ``pytest -n 4``.

They need Flask, pytest and the package mailcheck-daemon, whose fixtures start the mail server.
"""

from itertools import islice

import pytest


def times(count):
    """Repeat a test, so that four workers run tests in parallel."""
    return pytest.mark.parametrize("time", range(count))


def sign_up(shop, inbox):
    """Sign up at the shop and confirm the address."""
    shop.post("/sign-up", data={"email": inbox.address})
    return shop.get(inbox.wait().link)


@times(8)
def test_the_link_confirms(shop, mailcheck_inbox, time):
    shop.post("/sign-up", data={"email": mailcheck_inbox.address})
    mail = mailcheck_inbox.wait(timeout=20, subject="confirm")
    assert mail.link.startswith("http://localhost/confirm?token=")
    assert mailcheck_inbox.address in shop.get(mail.link).text


@times(8)
def test_the_code_confirms(shop, mailcheck_inbox, time):
    shop.post("/sign-up", data={"email": mailcheck_inbox.address})
    data = {"email": mailcheck_inbox.address, "code": mailcheck_inbox.wait().code}
    assert "Welcome" in shop.post("/code", data=data).text


@times(3)
def test_a_new_code_replaces_the_first(shop, mailcheck_inbox, time):
    shop.post("/sign-up", data={"email": mailcheck_inbox.address})
    first = mailcheck_inbox.wait()
    shop.post("/sign-up", data={"email": mailcheck_inbox.address})
    second = mailcheck_inbox.wait()  # the next message; a message is not returned twice
    for mail, status in ((first, 400), (second, 200)):
        data = {"email": mailcheck_inbox.address, "code": mail.code}
        assert shop.post("/code", data=data).status_code == status


@times(3)
def test_a_customer_can_choose_a_new_password(shop, mailcheck_inbox, time):
    sign_up(shop, mailcheck_inbox)
    shop.post("/reset", data={"email": mailcheck_inbox.address})
    assert shop.get(mailcheck_inbox.wait(subject="password").link).status_code == 200


@times(5)
def test_a_stranger_gets_no_mail(shop, mailcheck_inbox, time):
    shop.post("/reset", data={"email": mailcheck_inbox.address})
    mailcheck_inbox.none(seconds=1)


@times(3)
def test_an_order_sends_two_mails(shop, mailcheck_inbox, time):
    shop.post("/order", data={"email": mailcheck_inbox.address})
    ordered, on_its_way = islice(
        mailcheck_inbox.events(timeout=30), 2
    )  # each message as it arrives
    assert "on its way" in on_its_way.subject
    (invoice,) = ordered.attachments
    assert invoice.filename == "invoice.txt"
    assert b"12.50 EUR" in invoice.content
