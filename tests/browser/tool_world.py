"""Environment of the domain checks in browser tests: a DNS zone, its mail hosts and a daemon.

There are good and bad domains, a good one that only one test checks, and a hostile one whose
records contain markup. Some blocklists answer only when the test releases them.
"""

import smtplib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.fakes.blocklist_test_entries import publish_list_test_entries
from tests.fakes.memory_zone import MemoryZone, Records
from tests.servers.daemon import HOST, Daemon
from tests.servers.holding_name_server import HoldingNameServer, running_holding_name_server
from tests.servers.mail_host import running_mail_host
from tests.servers.name_server import publishing_name_server

KEY = "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="  # RFC 8463 A.2

MARKUP = "<script>alert(1)</script><img src=x onerror=alert(2)>'\"&"
"""Markup that runs if it is not escaped."""

SLOW_LISTS = ("multi.uribl.com", "multi.surbl.org")
"""Lists that answer only when they are released."""

RECORDS = {
    "good.test": {"A": ["127.0.0.1"], "MX": ["10 mail.good.test."], "TXT": ["v=spf1 mx -all"]},
    "mail.good.test": {"A": ["127.0.0.1"], "TXT": ["v=spf1 a -all"]},
    "_dmarc.good.test": {"TXT": ["v=DMARC1; p=reject; rua=mailto:dmarc@good.test"]},
    "default._domainkey.good.test": {"TXT": [KEY]},
    "1.0.0.127.in-addr.arpa": {"PTR": ["mail.good.test."]},
    "unchecked.test": {
        "A": ["127.0.0.1"],
        "MX": ["10 mail.good.test."],
        "TXT": ["v=spf1 mx -all"],
    },
    "_dmarc.unchecked.test": {"TXT": ["v=DMARC1; p=reject; rua=mailto:dmarc@unchecked.test"]},
    "default._domainkey.unchecked.test": {"TXT": [KEY]},
    "poor.test": {
        "A": ["127.0.0.1"],
        "MX": ["10 mail.good.test.", "20 gone.poor.test."],
        "TXT": ["v=spf1 include:more.poor.test include:gone.poor.test ?all"],
    },
    "more.poor.test": {"TXT": ["v=spf1 ip4:192.0.2.0/24 a:mail.good.test -all"]},
    "_dmarc.poor.test": {"TXT": ["v=DMARC1; p=none; pct=100"]},
    "listed.test": {"A": ["127.0.0.1"], "MX": ["10 mail.good.test."]},
    "known.test": {"A": ["127.0.0.1"], "MX": ["10 mail.good.test."]},
    "known.test.dbl.spamhaus.org": {"A": ["127.0.1.2"], "TXT": ["https://lists.test/why"]},
    "listed.test.dbl.spamhaus.org": {"A": ["127.0.1.2"], "TXT": ["https://lists.test/why"]},
    "listed.test.multi.uribl.com": {"A": ["127.0.0.2"], "TXT": [f"Listed: {MARKUP}"]},
    "hostile.test": {
        "A": ["127.0.0.1"],
        "MX": ["10 mail.good.test."],
        "TXT": [f"v=spf1 include:{MARKUP} -all"],
    },
    "_dmarc.hostile.test": {"TXT": [f"v=DMARC1; p=none; rua=mailto:{MARKUP}; x={MARKUP}"]},
    "default._domainkey.hostile.test": {"TXT": [f"v=DKIM1; k={MARKUP}; p=AAAA"]},
    "_mta-sts.hostile.test": {"TXT": [f"v=STSv1; id={MARKUP}"]},
    "_smtp._tls.hostile.test": {"TXT": [f"v=TLSRPTv1; rua=mailto:{MARKUP}"]},
}

NAMES = ("good.test", "unchecked.test", "poor.test", "listed.test", "hostile.test")


@dataclass(frozen=True, slots=True)
class ToolWorld:
    """The daemon, and the name server whose slow lists are released by a test.

    ``publish`` makes changes of the zone visible.
    """

    daemon: Daemon
    lists: HoldingNameServer
    zone: MemoryZone
    publish: Callable[[], None]

    def send(self, recipient: str, raw_message: bytes, helo: str = "mail.good.test") -> None:
        """Send a mail from ann@good.test."""
        with smtplib.SMTP(HOST, self.daemon.smtp_port, helo) as client:
            client.sendmail("ann@good.test", [recipient], raw_message)


@contextmanager
def running_tool_world(
    folder: Path, records: Records = MappingProxyType({}), **more: Any
) -> Iterator[ToolWorld]:
    """Run the environment. ``more`` are options of the daemon."""
    zone = MemoryZone({**RECORDS, **records})
    publish_list_test_entries(zone)
    with (
        publishing_name_server(zone) as (dns, publish),
        running_holding_name_server(dns, SLOW_LISTS) as lists,
        running_mail_host(
            folder,
            "mail.good.test",
            lists.server,
            dict.fromkeys(NAMES, "2010-01-01T00:00:00Z"),
            spamassassin_spamd="off",
            accounts_password_cost=10,
            **{"limits_waits_per_key": 1_000, "web_trusted_proxies": [HOST], **more},
        ) as daemon,
    ):
        lists.release()
        yield ToolWorld(daemon, lists, zone, publish)
        assert "Traceback" not in daemon.output(), daemon.output()
