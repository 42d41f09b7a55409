"""``mailcheck doctor``: check the setup of a daemon and print what to fix."""

import argparse
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mailcheck.api.domains.doctor import render_diagnosis, worst_health
from mailcheck.api.shapes import as_json
from mailcheck.assembly.checks import CheckRuntime, build_checks, open_resolvers
from mailcheck.assembly.doctor import DoctorParts
from mailcheck.assembly.probes import Probes
from mailcheck.assembly.runtime import Runtime
from mailcheck.checks.findings import Finding, RecordToPublish
from mailcheck.checks.hosts.own_zone import list_zone_records
from mailcheck.checks.proofs import proof_of
from mailcheck.cli.access.reactor_commands import CountedLookups, set_async_command
from mailcheck.cli.access.store_access import with_store
from mailcheck.cli.commands import Console
from mailcheck.cli.exit_statuses import EXIT_FINE, EXIT_PROBLEM, EXIT_UNDETERMINED
from mailcheck.cluster.local import LocalCluster
from mailcheck.core.domains.report_mailboxes import MailboxState
from mailcheck.daemon.wall_clock import of_the_system
from mailcheck.operations.doctor import Examination, Health
from mailcheck.store.domains.report_mailbox_store import ReportMailboxStore

STATUSES = {
    Health.FINE: EXIT_FINE,
    Health.PROBLEM: EXIT_PROBLEM,
    Health.UNKNOWN: EXIT_UNDETERMINED,
}


def add_doctor(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck doctor``."""
    parser.epilog = "Exit status: 0 fine, 1 problem, 2 usage error, 3 undetermined."
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--dns", action="store_true", help="print the DNS records to publish, in zone file format"
    )
    set_async_command(parser, examine)


async def examine(options: argparse.Namespace, console: Console, reactor: Any) -> int:
    """Examine all topics, or print the zone lines."""
    config = console.config
    clock_and_randomness = of_the_system(reactor)
    lookups = CountedLookups()
    console.progress.text = lookups.describe
    resolvers = open_resolvers(config, reactor, os.urandom, lookups.watch)
    cluster = LocalCluster(reactor)
    probes = Probes(config, reactor, clock_and_randomness, resolvers.plain, cluster)
    runtime = CheckRuntime(
        config, clock_and_randomness, resolvers, probes, cluster, persistent_state=cluster
    )

    async def find_mailboxes(mailbox_ids: Sequence[str]) -> Mapping[str, MailboxState]:
        async def find(opened: Runtime) -> Mapping[str, MailboxState]:
            return await ReportMailboxStore(opened.engine).states(mailbox_ids)

        return with_store(config, find)

    try:
        parts = DoctorParts(runtime, reactor, build_checks(runtime), probes, find_mailboxes)
        if options.dns:
            return _print_zone(list_zone_records(parts.expected_zone()), console)
        found = await parts.build().examine()
    finally:
        await runtime.close()
    if options.json:
        console.print_json(as_json(render_diagnosis(found)))
    else:
        console.print_lines(describe(found))
    return STATUSES[worst_health(examination.health for examination in found)]


def describe(found: Iterable[Examination]) -> Iterator[str]:
    """Yield the lines of a diagnosis. Each problem, remedy and record is named once."""
    marks = {Health.FINE: "ok", Health.PROBLEM: "PROBLEM", Health.UNKNOWN: "unknown"}
    named: dict[str, str] = {}
    records: set[str] = set()
    for examination in found:
        yield f"{examination.topic:<12} {marks[examination.health]}"
        by_remedy: dict[str, list[Finding]] = {}
        for finding in examination.findings:
            by_remedy.setdefault(finding.fix, []).append(finding)
        for remedy, findings in by_remedy.items():
            yield from dict.fromkeys(f"  {finding.meaning}" for finding in findings)
            topic = named.setdefault(remedy, examination.topic)
            if remedy:
                yield f"  -> {remedy}" if topic == examination.topic else f"  -> as for {topic}"
            fixes = [proof_of(finding, examination.proofs) for finding in findings]
            for record in [fix.record for fix in fixes if fix is not None]:
                line = f"     {record.name}  {record.rdtype}  {record.value}"
                if line not in records:
                    records.add(line)
                    yield line


def _print_zone(records: Iterable[RecordToPublish], console: Console) -> int:
    pointers = []
    for record in records:
        value = f'"{record.value}"' if record.rdtype == "TXT" else record.value
        line = f"{record.name}.  3600  IN  {record.rdtype}  {value}"
        if record.rdtype == "PTR":
            pointers.append(line)
        else:
            console.print_line(line)
    if pointers:
        console.print_line("; Ask the provider of the IP address to publish this record:")
    else:
        console.print_line(
            "; The public address of the server is not known here. Publish it as an A (AAAA) record"
            " of the server's name, and ask the provider of the address for a PTR record with this"
            " name."
        )
    console.print_lines(pointers)
    return EXIT_FINE
