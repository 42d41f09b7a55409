"""Every view of a mail shows the same results of SPF, DKIM and DMARC."""

import re
from collections.abc import Mapping, Sequence
from html import unescape
from itertools import product, repeat
from typing import Any

import pytest
from twisted.internet.defer import maybeDeferred

from mailcheck.api.authentication import render_authentication
from mailcheck.api.deliverability.report import render_report
from mailcheck.api.shapes import as_json
from mailcheck.checks.dns_answers import DnsStatus
from mailcheck.checks.dnsbl.catalogue import packaged_catalogue_text, parse_catalogue
from mailcheck.config.options import BlocklistOptions
from mailcheck.core.addresses import parse_mailbox
from mailcheck.core.deliverability_tests import ReceivedMail
from mailcheck.core.filters import MessageFilter
from mailcheck.core.messages import Envelope
from tests.corpus.corpus_mails import CorpusMail, load_part
from tests.fakes.mail_signer import RSA
from tests.house import config_in_memory, result_of, run
from tests.operations.scored_mails import ADDRESS, MAIL, received
from tests.table import rows
from tests.web.dashboard.browser import Browser
from tests.web.mcp.agent import Agent
from tests.web.scored_house import ScoredHouse

PUBLIC, PRIVATE, LOOPBACK = ADDRESS, "10.0.0.5", "127.0.0.1"

SIGNED = RSA.sign(MAIL)
TELLING = {
    "signed": SIGNED,
    "altered": SIGNED.replace(b"Monday", b"Sunday"),
    "unsigned": MAIL,
    "of an author without a record": MAIL.replace(b"ann@sender.example", b"ann@other.example"),
    "of two authors": MAIL.replace(b"From: Ann", b"From: Bob <bob@other.example>, Ann"),
    "of nobody": MAIL.replace(b"From: Ann Example <ann@sender.example>\r\n", b""),
    "of a domain that does not answer": MAIL.replace(b"ann@sender.example", b"ann@silent.example"),
    "signed by two": RSA.sign(SIGNED),
    "not a mail": b"\x00\xff\r\n\r\nwhat?",
    "with a broken signature": b"DKIM-Signature: v=1\r\n" + MAIL,
}
CORPUS = [one for part in ("tuning", "held_out", "retired") for one in load_part(part)]

ANY = MessageFilter()

_BADGE = re.compile('<dd><span class="badge [a-z]+">([^<]+)<')

Words = Mapping[str, Any]


@pytest.fixture
def scored() -> ScoredHouse:
    """A house with the zone of a perfect sender. One name does not resolve; no list is queried."""
    zones = [one.zone for one in parse_catalogue(packaged_catalogue_text()).blocklists]
    config = config_in_memory(blocklists=BlocklistOptions(disabled=tuple(zones)))
    scored = ScoredHouse(config=config)
    scored.zone.failing["_dmarc.silent.example"] = DnsStatus.TIMEOUT
    return scored


def of_message(authentication: Any) -> Words:
    """Return the results of a message in an inbox."""
    return {
        "spf": (authentication["spf"]["result"], authentication["spf"]["determined"]),
        "helo": authentication["spf"]["helo"]["result"],
        "dkim": [one["result"] for one in authentication["dkim"]],
        "dmarc": (authentication["dmarc"]["result"], authentication["dmarc"]["determined"]),
        "aligned": (authentication["dmarc"]["spfAligned"], authentication["dmarc"]["dkimAligned"]),
    }


def of_report(report: Any) -> Words:
    """Return the results of a report. Whether SPF is determined also depends on the host."""
    spf, dkim, dmarc = (report["checks"][name] for name in ("spf", "dkim", "dmarc"))
    assert spf["determined"] is False or spf["result"] != "temperror"
    return {
        "spf": (spf["result"], spf["result"] != "temperror"),
        "helo": spf["helo"]["result"],
        "dkim": [one["result"] for one in dkim["signatures"]],
        "dmarc": (dmarc["result"], dmarc["determined"]),
        "aligned": (dmarc["spfAligned"], dmarc["dkimAligned"]),
    }


def of_page(page: str) -> list[str]:
    """Return the results on the page of a message: SPF, each signature or none, and DMARC."""
    _, _, rest = page.partition("<summary>Authentication")
    return [unescape(word) for word in _BADGE.findall(rest[: rest.find("</dl>")])]


def shown_on_pages(words: Words, client_ip: str) -> list[str]:
    """Return how a page shows these results. SPF and DMARC depend on a public address."""
    if client_ip != PUBLIC:
        return ["not checked", *words["dkim"]]
    return [words["spf"][0], *(words["dkim"] or ["none"]), words["dmarc"][0]]


def send_to_both(scored: ScoredHouse, mail: ReceivedMail) -> tuple[str, str]:
    """Send one mail to the inbox and to a new test. Return the ids of message and test."""
    receiver, test_id = scored.house.assembly.receiver, scored.generate()
    accepted = tuple(
        result_of(
            maybeDeferred(
                receiver.accept_recipient, mail.session, mail.envelope_sender, parse_mailbox(to)
            )
        )
        for to in (scored.house.address(), scored.address(test_id))
    )
    envelope = Envelope(mail.envelope_sender, accepted)
    result_of(maybeDeferred(receiver.deliver, mail.session, envelope, mail.raw_message))
    scored.house.pass_time(1)  # analyses are paced while mail comes in
    (message, *_) = scored.house.get("/inbox/messages?limit=1").json["messages"]
    return message["id"], test_id


@rows(*zip(TELLING, repeat(PUBLIC)), *product(("signed", "of two authors"), (PRIVATE, LOOPBACK)))
def test_all_views_show_the_same(scored: ScoredHouse, name: str, client_ip: str) -> None:
    """Message, agent, share link, test, command line and both pages show the same results."""
    house, mail = scored.house, received(raw_message=TELLING[name], client_ip=client_ip)
    message_id, test_id = send_to_both(scored, mail)
    message = house.get(f"/inbox/messages/{message_id}").json
    arguments = {"id": message_id, "include": ["authentication"]}
    agent = Agent(house).use("get_message", **arguments)["message"]
    message_path = "/share/" + message["shareUrl"].rpartition("/")[2]
    shared = house.open(message_path).answer().json
    test = scored.get(test_id)
    report_path = "/share/" + test["shareUrl"].rpartition("/")[2]
    report = house.open(report_path).answer().json
    words = of_message(message["authentication"])
    told = {
        "agent": of_message(agent["authentication"]),
        "shared message": of_message(shared["authentication"]),
        "test": of_report(test),
        "shared report": of_report(report),
        "mailcheck score": of_report(
            as_json(render_report(run(house.assembly.scoring.score(mail))))
        ),
    }
    assert all(one == words for one in told.values()), (words, told)
    browser = Browser(house)
    page = browser.open(message_path).body.decode()
    assert of_page(page) == shown_on_pages(words, client_ip)
    assert f"<dt>Result</dt><dd>{words['spf'][0]}" in browser.open(report_path).body.decode()


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("client_ip", "mails"),
    [
        (PUBLIC, CORPUS[2::24]),
        (PRIVATE, CORPUS[::24]),
        (LOOPBACK, CORPUS[1::24]),
        pytest.param(PUBLIC, CORPUS, marks=pytest.mark.interop),
    ],
)
def test_inbox_and_report_agree_about_the_corpus(
    scored: ScoredHouse, client_ip: str, mails: Sequence[CorpusMail]
) -> None:
    """An inbox and a report show the same results for every mail, and send the same queries."""
    assembly, differing = scored.house.assembly, []
    for one in mails:
        mail = received(raw_message=one.raw, client_ip=client_ip)
        scored.deliver(scored.house.address(), mail)
        newest = run(assembly.inbox.read.page(scored.house.account.id, ANY, 1, 1)).messages[0]
        message = run(assembly.inbox.read.message(scored.house.account.id, newest.summary.id))
        shown = as_json(render_authentication(run(assembly.inbox.authenticate.of(message))))
        report = of_report(as_json(render_report(run(assembly.scoring.score(mail)))))
        if of_message(shown) != report:
            differing.append((one.id, shown, report))
    assert not differing
