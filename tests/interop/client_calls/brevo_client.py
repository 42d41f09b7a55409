"""Does the calls of Brevo's SDK for Python that send mail, and the questions of senders."""

import os

from brevo import Brevo
from calls import call, finish, received

client = Brevo(
    api_key=os.environ["API_KEY"],
    base_url=f"{os.environ['RECORDER']}/providers/brevo/v3",
    max_retries=0,
)
TO = "one.brevo-python@customer.example"


def send_transac_email() -> None:
    """Send a mail."""
    answer = client.transactional_emails.send_transac_email(
        sender={"email": "shop@example.com"},
        to=[{"email": TO}],
        subject="one",
        text_content="one",
    )
    assert received(TO)["headers"]["message-id"] == answer.message_id


def get_account() -> None:
    """Ask for the account."""
    assert client.account.get_account().plan[0].credits == 50_000


def get_senders() -> None:
    """Ask for the senders."""
    assert client.senders.get_senders().senders[0].active


call("transactional_emails.send_transac_email", send_transac_email)
call("account.get_account", get_account)
call("senders.get_senders", get_senders)
finish(["transactional_emails.send_transac_email"])
