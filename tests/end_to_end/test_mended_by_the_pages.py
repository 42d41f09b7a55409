"""A zone and a mail with ten faults, fixed by following the pages.

The daemon, a name server that is updated, and swaks are real. The records are those on the report's
share page and on the page of the domain.
"""

import html
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.end_to_end.single_faults import Sender
from tests.end_to_end.test_dashboard import Visitor, sign_in
from tests.end_to_end.test_deliverability import World, options
from tests.fakes.blocklist_test_entries import publish_list_test_entries
from tests.fakes.mail_signer import RSA
from tests.fakes.memory_zone import MemoryZone
from tests.servers.daemon import HOST, running_daemon
from tests.servers.mail_host import running_mail_host
from tests.servers.name_server import publishing_name_server

pytestmark = pytest.mark.end_to_end

STEPS = 20

Publish = Callable[[], None]
"""Function that updates the name server from the zone."""

FAULTY = Sender(
    "faulty",
    publishes={
        "{domain}": {
            "TXT": ["v=spf1 include:gone.example mx,a a:old.example", "v=spf1 ?all", "hello"],
        },
        "mx.{domain}": {"TXT": ["v=spf1 -all"]},
        "{address}.in-addr.arpa": {"PTR": ["li982-157.members.linode.example."]},
        "_dmarc.{domain}": {"TXT": ["v=DMARC1; p=bogus; sp=none; pct=20; t=y"]},
        "s1._domainkey.{domain}": {"TXT": [RSA.key_record.replace("v=DKIM1;", "v=DKIM1; t=y;")]},
    },
    helo="smtp",
    number=77,
)
"""Faults: two SPF records, an include and an a of missing names, a comma, ?all; a provider's
reverse DNS; a HELO name without an address; an invalid DMARC policy, sp, pct, no reports; a test
key.
"""

_RECORD = re.compile(r'<dl class="dns-record">(.*?)</dl>', re.DOTALL)
_FIELD = re.compile(r"<dt>([^<]+)</dt><dd><code[^>]*>(.*?)</code>", re.DOTALL)


def read_page(port: int, path: str) -> str:
    """Open a page."""
    with closing(HTTPConnection(HOST, port, timeout=60)) as connection:
        connection.request("GET", path, headers={"Accept": "text/html"})
        return connection.getresponse().read().decode("utf-8")


def read_records(page: str) -> list[list[tuple[str, str]]]:
    """Return the records of a page as label and value, from top to bottom."""
    return [
        [(label, html.unescape(value)) for label, value in _FIELD.findall(block)]
        for block in _RECORD.findall(page)
    ]


def type_in(zone: MemoryZone, record: list[tuple[str, str]]) -> None:
    """Change the zone as the page says."""
    fields: Mapping[str, str] = dict(record)
    name, rdtype, value = fields["Name"], fields["Type"], fields["Value"]
    gone = [shown for label, shown in record if label == "Replaces"]
    kept = [one for one in zone.published(name, rdtype) if one not in gone]
    zone.publish(name, rdtype, *dict.fromkeys([*kept, value]))


def test_ten_faults_are_mended_from_top_to_bottom(tmp_path: Path) -> None:
    """The score never falls on the way, and ends at 10.0 without a record left to publish."""
    zone = MemoryZone(FAULTY.records())
    publish_list_test_entries(zone)
    scores = []
    with (
        publishing_name_server(zone) as (server, publish),
        running_daemon(
            tmp_path,
            **options(tmp_path, f"{server.host}:{server.port}"),
            spamassassin_spamd="off",
        ) as daemon,
    ):
        world = World(daemon)
        for _ in range(STEPS):
            found = world.scored(FAULTY)
            scores.append(found["score"])
            page = read_page(daemon.http_port, urlsplit(found["shareUrl"]).path)
            records = read_records(page)
            if not records:
                break
            type_in(zone, records[0])
            publish()
        told = [one["meaning"] for one in found["deductions"]]
    assert scores == sorted(scores), scores
    assert (scores[0] < 7.0, scores[-1]) == (True, 10.0), (scores, told)
    assert "hello" in zone.published("faulty.example", "TXT")
    assert "p=quarantine" in "".join(zone.published("_dmarc.faulty.example", "TXT"))


@dataclass(frozen=True)
class LocalSender(Sender):
    """A sender whose mail host is the daemon itself, so that it can be looked at."""

    @property
    def domain(self) -> str:
        """The sender's domain."""
        return f"{self.name}.test"

    @property
    def address(self) -> str:
        """The address of the sender and of its mail host."""
        return HOST


LOCAL = LocalSender(
    "faulty",
    publishes={
        **FAULTY.publishes,
        "{domain}": {
            **FAULTY.publishes["{domain}"],
            "MX": ["10 mx.faulty.test.", "20 gone.faulty.test."],
        },
    },
    helo="smtp",
)
"""The same ten faults, and a mail host that does not exist."""

SCORE = re.compile(r'aria-label="Score (\d+) of 100, grade')


@contextmanager
def running_local_world(folder: Path, zone: MemoryZone) -> Iterator[tuple[World, Visitor, Publish]]:
    """Run the daemon as the mail host of the domain, a registry, and the name server."""
    with (
        publishing_name_server(zone) as (server, publish),
        running_mail_host(
            folder,
            f"mx.{LOCAL.domain}",
            server,
            {LOCAL.domain: "2010-01-01T00:00:00Z"},
            # The daemon receives DMARC reports there, so the page offers addresses for them.
            inbox_domain="in.example.net",
            smtp_xclient_from=[HOST],
            spamassassin_spamd="off",
        ) as daemon,
    ):
        yield World(daemon), sign_in(daemon), publish
        assert "Traceback" not in daemon.output(), daemon.output()


def test_a_domain_is_mended_from_top_to_bottom(tmp_path: Path) -> None:
    """Following the domain page and the report to their ends leads to all points and to 10.0."""
    zone = MemoryZone(LOCAL.records())
    publish_list_test_entries(zone)
    page_of_domain = f"/domains/{LOCAL.domain}?selectors=s1&refresh=true&whole=true"
    scores: list[int] = []
    marks: list[float] = []
    with running_local_world(tmp_path, zone) as (world, visitor, publish):
        for _ in range(STEPS):
            page = visitor.open(page_of_domain)
            scores += map(int, SCORE.findall(page))
            records = read_records(page)
            if not records:
                break
            type_in(zone, records[0])
            publish()
        for _ in range(STEPS):
            found = world.scored(LOCAL)
            marks.append(found["score"])
            report = visitor.open(urlsplit(found["shareUrl"]).path)
            records = read_records(report)
            if not records:
                break
            type_in(zone, records[0])
            publish()
        page = visitor.open(page_of_domain)
    assert scores == sorted(scores), scores
    assert scores[0] < 60, scores
    left = re.findall(r"<strong>Fix:</strong> ([^<]+)", page)
    assert "All factors have full points." in page, (scores, left)
    assert "rua=mailto:dmarc-" in "".join(zone.published(f"_dmarc.{LOCAL.domain}", "TXT"))
    assert SCORE.findall(page) == ["100"]
    assert read_records(page) == []
    assert (marks == sorted(marks), marks[-1]) == (True, 10.0), marks
