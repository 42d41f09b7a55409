"""Measure how much CPU the proofs of advice add to a domain page and to a report.

Run it with ``python -m benchmarks.advice``. A domain with nine faults and a mail from it are
checked with a real resolver over UDP (NSD on loopback), alternately with and without proofs. The
benchmark compares the CPU time of this process, from the first DNS query to the page that a browser
gets (a domain's reputation and its records) and to the JSON of the report. It prints the median
ratio of neighbouring runs, one without and one with proofs, so that a machine that becomes slower
affects both. The garbage collector runs before each of them. There is no peer, because no other
tool proves its advice. Target: at most 15 % more CPU, and no query sent twice.
"""

import argparse
import gc
import os
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping
from types import SimpleNamespace
from typing import Any

from msgspec.structs import replace
from twisted.internet.task import react
from twisted.web.http_headers import Headers

from mailcheck.api.deliverability.report import render_report
from mailcheck.api.requests.parsing import Query
from mailcheck.api.shapes import as_json
from mailcheck.assembly.checks import CheckRuntime, Checks, build_checks, open_resolvers
from mailcheck.assembly.scoring import Scoring, build_filters, build_scoring
from mailcheck.checks.proofs import NO_PROOFS, Proofs
from mailcheck.cluster.local import LocalCluster
from mailcheck.config.options import Config
from mailcheck.daemon.wall_clock import of_the_system
from mailcheck.operations.concurrency import run_all
from mailcheck.operations.deliverability import score_mail
from mailcheck.operations.deliverability.score_mail import ScoringSettings
from mailcheck.operations.domains import compute_reputation, describe_domain
from mailcheck.operations.domains.compute_reputation import ReputationQuery
from mailcheck.operations.domains.show_domains import DomainSummary, with_check
from mailcheck.web.dashboard.addresses import MINE
from mailcheck.web.dashboard.domains.frame import FACTORS, view_domain
from mailcheck.web.dashboard.domains.pages import DomainCheck, view_check
from mailcheck.web.dashboard.rendering import Renderer
from mailcheck.web.dashboard.static_files import StaticFiles
from mailcheck.workers.scheduling import DirectWorker
from tests.fakes.blocklist_test_entries import publish_list_test_entries
from tests.fakes.fake_hosts import FakeHosts
from tests.fakes.mail_signer import RSA
from tests.fakes.memory_zone import MemoryZone
from tests.house import config_in_memory
from tests.operations.scored_mails import HELO, PERFECT, received
from tests.servers.name_server import running_name_server

DOMAIN = "sender.example"

FAULTY: Mapping[str, Mapping[str, list[str]]] = {
    DOMAIN: {
        "TXT": ["v=spf1 include:gone.example ptr a:old.sender.example", "v=spf1 ?all"],
        "MX": [f"10 {HELO}.", "20 gone.sender.example."],
    },
    HELO: {"A": ["8.8.4.10"], "TXT": ["v=spf1 -all"]},
    "10.4.8.8.in-addr.arpa": {"PTR": ["li982-157.members.linode.example."]},
    "_dmarc.sender.example": {"TXT": ["v=DMARC1; p=none; sp=none; pct=20; t=y"]},
    RSA.key_name: {"TXT": [RSA.key_record.replace("v=DKIM1;", "v=DKIM1; t=y;")]},
}
MODULES: tuple[Any, ...] = (score_mail, compute_reputation, describe_domain)

VISIT: Any = SimpleNamespace(
    request=SimpleNamespace(prepath=[b"domain"], uri=b"/domain", requestHeaders=Headers()),
    person=None,
    membership=None,
    project="",
    projects=(),
    nearest=MINE,
    page_path="/domain",
    is_secure=False,
    link=str,
    form_secret=SimpleNamespace(token=str),
    query=Query({}),
    urls=SimpleNamespace(public_url="http://127.0.0.1:8080"),
)
"""The user who opens the page."""


async def without_proofs(*_: Any) -> Proofs:
    """Replace the proofs."""
    return NO_PROOFS


async def measure(reactor: Any, rounds: int, server: str) -> None:
    """Check page and report with and without proofs in turn, and print the comparison."""
    dns = replace(Config().dns, resolvers=(server,))
    config = config_in_memory(dns=dns)
    proving = [module.verify_fixes for module in MODULES]
    renderer = Renderer(StaticFiles(), lambda: False)
    spent: dict[tuple[str, bool], list[float]] = {}
    for number in range(2 * rounds):
        is_proven = bool(number % 2)
        for module, prove in zip(MODULES, proving, strict=True):
            module.verify_fixes = prove if is_proven else without_proofs
        # A new application each time, so that nothing is cached.
        resolvers = open_resolvers(config, reactor, os.urandom)
        alone, clock_and_randomness = LocalCluster(reactor), of_the_system(reactor)
        runtime = CheckRuntime(config, clock_and_randomness, resolvers, FakeHosts(), alone, alone)
        checks = build_checks(runtime)
        settings = ScoringSettings("mailcheck.example", False, lambda _: True)
        filters = build_filters(config, reactor, DirectWorker())
        scoring = build_scoring(runtime, checks, DirectWorker(), filters, settings)
        await checks.health.test_all()

        async def page(checks: Checks = checks) -> None:
            reputation, described = await run_all(
                checks.reputation.compute(ReputationQuery(DOMAIN)),
                checks.domain.describe(DOMAIN),
            )
            found = DomainCheck(reputation, described)
            summary = with_check(DomainSummary(DOMAIN), reputation, found.problems)
            renderer.page(
                VISIT,
                "domain_fix_result.html",
                row=view_domain(summary, reputation.checked_at),
                factors=FACTORS,
                again="",
                **view_check(found),
            )

        async def report(scoring: Scoring = scoring) -> None:
            scored = await scoring.score(received(helo_name="smtp.sender.example"))
            as_json(render_report(scored))

        work: dict[str, Callable[[], Awaitable[None]]] = {"domain page": page, "report": report}
        for name, do in work.items():
            gc.collect()
            begun = time.process_time()
            await do()
            spent.setdefault((name, is_proven), []).append(time.process_time() - begun)
        await resolvers.close()
    for name in ("domain page", "report"):
        pairs = list(zip(spent[name, False], spent[name, True], strict=True))
        plain, proven = (statistics.median(times) * 1000 for times in zip(*pairs, strict=True))
        ratio = statistics.median(after / before for before, after in pairs)
        print(f"{name}: {plain:.1f} ms without, {proven:.1f} ms with proofs: {ratio:.2f}")


def main() -> None:
    """Run the name server and the measurement."""
    parser = argparse.ArgumentParser(description="what proven advice costs")
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    zone = MemoryZone({**PERFECT, **FAULTY})
    publish_list_test_entries(zone)
    with running_name_server(zone) as server:
        react(measure, (rounds, f"{server.host}:{server.port}"))


if __name__ == "__main__":
    main()
