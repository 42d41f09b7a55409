"""The pages of the traffic of a mail server."""

import pytest

from mailcheck.config.options import AccountsOptions, MilterOptions
from mailcheck.core.messages import Session
from tests.house import CHEAP_HASH, House, config_in_memory, run
from tests.operations.scored_mails import ADDRESS, received, zone_with
from tests.web.dashboard.browser import Browser

CHEAP = AccountsOptions(password_cost=CHEAP_HASH, registration="open")
MILTER = MilterOptions(listen=("127.0.0.1:1",))


@pytest.fixture
def house() -> House:
    """A house with the zone of a perfect sender, and a milter endpoint."""
    return House(config_in_memory(milter=MILTER, accounts=CHEAP), zone=zone_with())


def count_a_mail(house: House) -> None:
    """Score a copy of a mail of the perfect sender."""
    mail = received()
    session: Session = mail.session
    copy = house.assembly.traffic.score.begin(session, "ann@sender.example", is_authenticated=False)
    assert copy is not None
    copy.add(mail.raw_message)
    copy.finish()
    house.pass_time(0)
    run(house.assembly.traffic.score.flush())


def test_senders_and_their_clients(house: House) -> None:
    """The page lists the senders, and each leads to its clients and results."""
    run(house.assembly.accounts.sign_in.set_password(house.account, "correct horse"))
    first = Browser(house, "192.0.2.7")
    first.sign_in("first")
    count_a_mail(house)
    assert "sender.example11110000.01" in first.read("/traffic?days=30")
    assert "1 mail on 1 day" in first.words
    first.open("/traffic/sources?domain=sender.example&days=30")
    row = f"{ADDRESS}sender.examplesender.examplepasspasspass100.02026-11-21"
    assert row in first.words
    assert "No mail of this sender" in first.read("/traffic/sources?domain=other.example")


def test_others_do_not_see_them(house: House, bob: Browser) -> None:
    """Another account sees none of the counts."""
    count_a_mail(house)
    bob.open("/traffic")
    assert "sender.example" not in bob.words
    assert "No mail was counted" in bob.words


def test_a_server_without_a_milter() -> None:
    """Without an endpoint, the page says how the operator can open one."""
    carol = Browser(House(config_in_memory(accounts=CHEAP)), "192.0.2.9")
    carol.sign_up("carol")
    assert "has no milter endpoint" in carol.read("/traffic")
