"""Generates ``docs/reference/`` from the code, and snippets in other pages (``make reference``).

The generated pages are committed, so that readers of the sources find them. A test fails when they
are out of date.
"""

import argparse
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from html import unescape
from itertools import groupby
from pathlib import Path
from typing import Any

from markupsafe import Markup
from msgspec import Struct

from mailcheck.api.requests.fields import LONGEST_TASK
from mailcheck.api.urls import PublicUrls
from mailcheck.assembly.doors.agents import build_tools
from mailcheck.assembly.doors.compatible import FACADES
from mailcheck.assembly.doors.pages import build_pages
from mailcheck.assembly.doors.rest import build_routes
from mailcheck.checks.dnsbl.catalogue import Blocklist, packaged_catalogue_text, parse_catalogue
from mailcheck.checks.finding_row import Row
from mailcheck.checks.findings_table import ROWS
from mailcheck.checks.quality.receiver_replies import EVERY_SENDER, load_profiles
from mailcheck.checks.quality.topics import load_topics
from mailcheck.checks.receiver_reports.services import load_services
from mailcheck.checks.weights import LISTING_TIERS, MEASURED, QUALITY_AREAS
from mailcheck.cli.main import COMMANDS, make_parser
from mailcheck.config.options import Config, NamedOption, options_of
from mailcheck.config.reading import FILE_SUFFIX, variable_name
from mailcheck.core.identifiers import AccountId
from mailcheck.core.inbound import (
    NO_LIMIT,
    InboundDeliveryId,
    InboundFault,
    InboundFormat,
    InboundMail,
    InboundMailId,
    InboundMoment,
    InboundRoute,
    InboundRouteId,
    WriteInboundRequest,
)
from mailcheck.core.instants import parse_instant
from mailcheck.core.memory.instruments import Kind
from mailcheck.core.projects import ROLE_TEXTS
from mailcheck.core.rights import SCOPE_TEXTS, Scope
from mailcheck.web.api.description import ApiDescription
from mailcheck.web.dashboard.api_reference.view import describe_bounds, describe_type, list_fields
from mailcheck.web.dashboard.snippets import write_snippets
from mailcheck.web.mcp.protocol_modes import Extension
from mailcheck.web.providers.bodies import read_form
from mailcheck.web.providers.catalogue import PROVIDERS
from mailcheck.web.providers.inbound.catalogue import FormatRow, format_rows
from mailcheck.web.providers.provider import MEANINGS, Posting, Provider, Support
from mailcheck.web.site.application import Route
from mailcheck.web.site.likeness import Like
from tests.docs.blocks import list_pages, read_blocks, with_snippets
from tests.house import House, config_in_memory
from tests.interop.clients import CLIENTS, CallResult, ClientRun, Outcome, proofs, recorded_run
from tests.ops.test_ops_monitoring import our_metrics
from tests.spec.description import load_document
from tests.web.mcp.agent import Agent

FOLDER = Path(__file__).parents[1] / "docs" / "reference"


def code(value: object) -> str:
    """Format a text as code, or return an empty string."""
    return f"`{value}`" if str(value) else ""


def cell(text: str) -> str:
    """Format a text as a table cell: on one line, with Markdown and HTML characters escaped."""
    text = " ".join(text.split())
    parts = re.split(r"(`[^`]*`)", text)
    plain = [
        re.sub(r"([*_<>\[\]])", r"\\\1", one) if i % 2 == 0 else one for i, one in enumerate(parts)
    ]
    return "".join(plain).replace("|", r"\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, or an empty string if there are no rows."""
    written = [f"| {' | '.join(row)} |" for row in rows]
    if not written:
        return ""
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *written]) + "\n"


def page(title: str, source: str, *parts: str) -> str:
    """Return a page; ``source`` names the code from which it is generated."""
    head = f"# {title}\n\nGenerated from {source} with `make reference`.\n"
    return "\n".join([head, *(part for part in parts if part)])


# Options.


def write_options() -> str:
    """Return the page of configuration options."""
    config = Config()
    sections = []
    for section in Config.__struct_fields__:
        options = getattr(config, section)
        rows = [
            _option_row(section, one, getattr(options, one.name)) for one in options_of(options)
        ]
        head = ("Option", "Default", "Variable", "Meaning")
        sections.append(f"## {section}\n\n{type(options).__doc__}\n\n{table(head, rows)}")
        sections.extend(
            _table_of_options(f"{section}.{one.name}", one.described.tables)
            for one in options_of(options)
            if one.described.tables is not None
        )
    words = (
        "The daemon and `mailcheck` read one TOML file (`--config`). Environment variables"
        " override it. A variable contains a TOML value, a word, or words separated by commas."
        f" A secret option has a twin whose name ends with `{FILE_SUFFIX}`; it names a file that"
        " contains the secret. An unknown option or a wrong value is an error that names the"
        " line. `mailcheck reload` applies a change of an option that is marked as reloadable;"
        " other changes need a restart.\n"
    )
    return page("Options", "`mailcheck/config/options.py`", words, *sections)


def _table_of_options(name: str, kind: type[Struct]) -> str:
    """Describe the options of each table of an option."""
    rows = [_option_row("", one, one.default) for one in options_of(kind)]
    listed = table(("Option", "Default", "Meaning"), [(row[0], row[1], row[3]) for row in rows])
    return f"### [[{name}]]\n\n{kind.__doc__}\n\n{listed}"


def _option_row(section: str, option: NamedOption, default: Any) -> tuple[str, str, str, str]:
    known = option.described
    bounds = [
        f"at least {known.lowest:,}" if known.lowest is not None else "",
        f"at most {known.highest:,}" if known.highest is not None else "",
        "one of " + ", ".join(map(code, known.choices)) if known.choices else "",
        "secret" if known.is_secret else "",
        "reloadable" if known.is_reloadable else "",
    ]
    said = "; ".join(filter(None, bounds))
    text = known.text + (f" ({said})" if said else "")
    shown = json.dumps(default if not isinstance(default, tuple) else list(default))
    return (code(option.name), code(shown), code(variable_name(section, option.name)), cell(text))


# Commands.


def write_commands() -> str:
    """Return the page of commands with their arguments."""
    parser = make_parser(list(COMMANDS))
    parts = [_write_command("mailcheck", parser, "")]
    parts += [
        _write_command(f"mailcheck {words}", one, text)
        for words, one, text in _commands_of(parser)
        if not _is_group(one)
    ]
    status = (
        "Exit status: 0 success; 1 a problem, or no mail arrived; 2 wrong usage; 3 something could"
        " not be determined. `mailcheck COMMAND --help` shows the same texts.\n"
    )
    return page("Commands", "`mailcheck/cli/`", status, *parts)


def _subcommands(parser: argparse.ArgumentParser) -> Iterator[Any]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield action


def _is_group(parser: argparse.ArgumentParser) -> bool:
    return any(_subcommands(parser))


def _commands_of(
    parser: argparse.ArgumentParser, before: str = ""
) -> Iterator[tuple[str, argparse.ArgumentParser, str]]:
    for action in _subcommands(parser):
        texts = {one.dest: one.help or "" for one in action._choices_actions}
        for name, one in action.choices.items():
            if name in texts:  # not an alias
                yield before + name, one, texts[name]
                yield from _commands_of(one, f"{before}{name} ")


def _write_command(name: str, parser: argparse.ArgumentParser, text: str) -> str:
    rows = [
        (code(_spelling(action)), cell((action.help or "") + _choices(action)))
        for action in sorted(parser._actions, key=_order)
        if not isinstance(action, argparse._SubParsersAction | argparse._HelpAction)
        and action.help != argparse.SUPPRESS
    ]
    words = text or parser.description or ""
    return f"## {name}\n\n{cell(words)}\n\n{table(('Argument', 'Meaning'), rows)}"


def _order(action: argparse.Action) -> tuple[bool, bool]:
    """Order arguments: without a name, with one, and the options of all commands of a daemon."""
    return bool(action.option_strings), action.dest in ("json", "url", "key_file")


def _spelling(action: argparse.Action) -> str:
    value = action.metavar or (action.dest.upper() if action.option_strings else action.dest)
    value = "" if action.nargs == 0 else str(value)
    if not action.option_strings:
        return f"[{value}]" if action.nargs in ("?", "*") else value
    return " ".join(filter(None, (", ".join(action.option_strings), value)))


def _choices(action: argparse.Action) -> str:
    return f" ({', '.join(map(str, action.choices))})" if action.choices else ""


# Routes, shapes and tools.


def write_routes(document: Mapping[str, Any]) -> str:
    """Return the page of routes with their parameters and statuses."""
    calls: dict[str, list[str]] = {tag["name"]: [] for tag in document["tags"]}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            calls[operation["tags"][0]].append(_write_route(method.upper(), path, operation))
    groups = [
        f"## {tag['name']}\n\n{tag['description']}\n\n" + "\n".join(calls[tag["name"]])
        for tag in document["tags"]
    ]
    words = (
        "All paths are below `/api/v1`. `/api` of a daemon shows the same with an example and a"
        " command for each call, and `/api/v1/openapi.json` is for programs. The types are in"
        " [JSON shapes](shapes.md).\n"
    )
    return page("Routes", "the OpenAPI document that the daemon serves", words, *groups)


def _write_route(method: str, path: str, operation: Mapping[str, Any]) -> str:
    parameters = [
        (
            code(one["name"]),
            one["in"] + (", required" if one["required"] else ""),
            _kind(one["schema"]),
            cell(_with_bounds(one["description"], one["schema"])),
        )
        for one in operation.get("parameters", ())
    ]
    answers = [
        (status, _kinds(answer), cell(answer["description"]))
        for status, answer in operation["responses"].items()
        if "$ref" not in answer
    ]
    shared = [status for status, answer in operation["responses"].items() if "$ref" in answer]
    body = _kinds(operation.get("requestBody", {}))
    return "\n".join(
        filter(
            None,
            (
                f"### {method} {path}\n\n**{operation['summary']}.** {operation['description']}\n",
                f"Body: {body}\n" if body else "",
                table(("Parameter", "In", "Type", "Meaning"), parameters),
                table(("Status", "Body", "Meaning"), answers),
                f"Also {', '.join(shared)}, as for every route.\n" if shared else "",
            ),
        )
    )


def _with_bounds(text: str, schema: Mapping[str, Any]) -> str:
    bounds = describe_bounds(schema)
    return f"{text} ({bounds})" if bounds else text


_LINK = re.compile(r'<a href="#schema-(\w+)">\w+</a>')
_TAGS = re.compile(r"</?(?:code|b)>")


def _markdown(shown: Markup) -> str:
    """Convert HTML of the page about the API to Markdown, with links to named types."""
    linked = _LINK.sub(lambda found: f"[{found[1]}](shapes.md#{found[1].lower()})", str(shown))
    return unescape(_TAGS.sub(lambda found: "`" if "code" in found[0] else "", linked))


def _kind(schema: Mapping[str, Any]) -> str:
    return _markdown(describe_type(schema)).replace("|", r"\|")


def _kinds(described: Mapping[str, Any]) -> str:
    contents = described.get("content", {})
    return ", ".join(
        f"{_kind(one['schema'])} ({media_type})" if "schema" in one else f"bytes ({media_type})"
        for media_type, one in contents.items()
    )


def _field_rows(schema: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for row in list_fields(schema):
        required = "" if row.is_required else " (may be missing)"
        kind = _markdown(row.kind).replace("|", r"\|")
        yield code(row.name), kind + required, cell(_markdown(row.description))


def write_shapes(document: Mapping[str, Any]) -> str:
    """Return the page of JSON shapes with their fields."""
    head = ("Field", "Type", "Meaning")
    parts = []
    for name, schema in sorted(document["components"]["schemas"].items()):
        fields = table(head, _field_rows(schema)) or f"{_kind(schema)}\n"
        parts.append(f"## {name}\n\n{schema.get('description', '')}\n\n{fields}")
    return page("JSON shapes", "`mailcheck/api/`, by the OpenAPI document", *parts)


def write_tools(house: House) -> str:
    """Return the page of MCP tools."""
    tools = Agent(house).tools()
    listed = [(f"[{code(name)}](#{name})", tool["title"]) for name, tool in tools.items()]
    extensions = (
        f"Clients of the extension `{Extension.TASKS}` may pass a `timeout` of up to "
        f"{LONGEST_TASK:g} seconds. The card of `{Extension.UI}` has two more tools, which models "
        "do not see. [Connect an agent](../how-to/connect-an-agent.md) explains both extensions.\n"
    )
    parts = [table(("Tool", "Purpose"), listed), extensions]
    for name, tool in tools.items():
        takes = table(("Argument", "Type", "Meaning"), _field_rows(tool["inputSchema"]))
        gives = table(
            ("Result", "Type", "Meaning"), _field_rows(_without_names(tool["wholeSchema"]))
        )
        hints = [hint for hint, is_so in tool["annotations"].items() if is_so is True]
        parts.append(
            f"## {name}\n\n**{tool['title']}.** {tool['description']}\n\n"
            f"Hints: {', '.join(map(code, hints)) or 'none'}.\n\n"
            + (takes or "The tool has no arguments.\n")
            + f"\n{gives}"
        )
    return page("Tools for agents", "what the MCP server lists (`tools/list`)", *parts)


def _without_names(schema: Any) -> Any:
    """Return a schema with plain objects in place of references to named ones."""
    if isinstance(schema, list):
        return [_without_names(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return {"type": "object"}
    return {name: _without_names(one) for name, one in schema.items()}


def write_scopes(house: House) -> str:
    """Return the page of scopes with the routes and tools that need them."""
    routes, tools = build_routes(house.assembly), build_tools(house.assembly)
    permitted = [
        (
            code(scope),
            text,
            ", ".join(
                code(f"{route.method} {route.path}")
                for route in routes
                if scope in route.operation.scopes
            ),
            ", ".join(code(tool.name) for tool in tools if scope in tool.scopes),
        )
        for scope, text in SCOPE_TEXTS.items()
    ]
    words = (
        f"A key without scopes has all but `{Scope.PROJECT_ADMIN}` and `{Scope.OPERATOR}`. A route "
        "or tool that is in several rows needs all of these scopes."
        f" The submission port needs `{Scope.INBOX_WRITE}`."
        " [Limit an API key](../how-to/limit-an-api-key.md) says how to issue a limited key.\n"
    )
    rows = table(("Scope", "Permits to", "Routes", "Tools"), permitted)
    _, _, pages = build_pages(house.assembly, routes, ApiDescription(routes))
    of_pages = table(
        ("Role", "Permits to", "Pages"),
        (
            (
                str(role),
                text,
                ", ".join(
                    code(f"{one.method} {one.path}") for one in pages if one.needed_role is role
                ),
            )
            for role, text in ROLE_TEXTS.items()
        ),
    )
    personal = ", ".join(code(f"{one.method} {one.path}") for one in pages if one.guard.is_personal)
    return page(
        "Scopes and roles",
        "the routes, tools and pages",
        "## Scopes of API keys\n",
        words,
        rows,
        "## Roles of members\n",
        "A member of a [project](../how-to/share-an-inbox.md) has one role. A person has all rights"
        " in the own account.\n",
        of_pages,
        f"These pages are about the person and have no project in their address: {personal}.\n",
    )


# Metrics, topics, findings and blocklists.


def write_metrics(house: House) -> str:
    """Return the page of metrics with their labels."""
    endings = {Kind.COUNTER: "_total", Kind.GAUGE: "", Kind.DISTRIBUTION: ""}
    rows = [
        (
            code(metric.name + endings[metric.kind]),
            {Kind.DISTRIBUTION: "histogram"}.get(metric.kind, metric.kind.value),
            ", ".join(map(code, metric.labels)),
            cell(metric.text),
        )
        for metric in our_metrics(house)
    ]
    words = (
        "Every Python process also has `process_*` and `python_gc_*`."
        " [Operate a daemon](../how-to/operate-a-daemon.md#read-metrics) says how to read the"
        " metrics, and [Set up alerts](../how-to/set-up-alerts.md) explains the alerts.\n"
    )
    rows_text = table(("Metric", "Kind", "Labels", "Meaning"), rows)
    return page("Metrics", "`mailcheck/assembly/metrics.py`", rows_text, words)


def write_topics() -> str:
    """Return the page of topics, with the reason for each and links to further reading."""
    topics = dict.fromkeys(load_topics().values())
    sections = []
    for topic in topics:
        links = ", ".join(f"[{one.title}]({one.url})" for one in topic.links)
        more = f"\n\nRead on: {links}." if links else ""
        sections.append(f"## {topic.heading}\n\n{topic.why}{more}\n")
    words = "The topics of domain checks and reports, with the texts of pages and command line.\n"
    return page("Topics", "the table of topics", words, *sections)


def write_findings() -> str:
    """Return the page of findings with their ids, meanings and points."""
    areas: dict[str, list[str]] = {}
    for row in sorted(ROWS, key=lambda one: one.id):
        areas.setdefault(row.id.partition(".")[0], []).append(_write_finding(row))
    words = (
        "A report says for each finding what it means and what to do. Points are those of a mail's"
        " score (0 to 10): see [Scores](../explanation/scores.md). The page of a domain shows the"
        " points of its reputation score beside each factor. A word in braces, like {domain},"
        " stands for a value of the case.\n"
    )
    parts = [f"## {area}\n\n" + "\n".join(rows) for area, rows in areas.items()]
    return page("Findings", "the table of findings", words, *parts)


def _write_finding(row: Row) -> str:
    severity = "depends on the case" if row.severity is None else row.severity.value
    points = "measured in each case" if row.id in MEASURED else ""
    if row.price is not None:
        points = f"{row.price / 10:.1f}"
    lines = [
        f"* Finding: {cell(row.title)}",
        f"* What it means: {cell(row.meaning)}",
        *([f"* What to do: {cell(row.advice)}"] if row.advice else []),
        f"* Severity: {severity}",
        *([f"* Points: {points}"] if points else []),
        *([f"* Earlier ids: {', '.join(map(code, row.aliases))}"] if row.aliases else []),
    ]
    return f"### {row.id}\n\n" + "\n".join(lines) + "\n"


PRICES = FOLDER.parent / "explanation" / "scores.md"


def write_prices() -> str:
    """Return the page about scores with the points of the code in its tables."""
    priced = [row for row in ROWS if row.price is not None]
    tables = {
        "costs": _price_table(row for row in priced if row.area not in QUALITY_AREAS),
        "format": _price_table(row for row in priced if row.area in QUALITY_AREAS),
        "listings": table(
            ("Weight of the list", "Points", "Why"),
            (
                (f"{tier.weight} and more", f"{tier.tenths / 10:.1f}", tier.reason)
                for tier in LISTING_TIERS
            ),
        ),
    }
    text = PRICES.read_text("utf-8")
    for name, written in tables.items():
        before, start, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- /{name} -->")
        text = f"{before}{start}{written}{end}{after}"
    return text


def _price_table(rows: Iterable[Row]) -> str:
    return table(
        ("Finding", "Points", "When", "Why"),
        ((code(row.id), f"{(row.price or 0) / 10:.1f}", row.title, row.meaning) for row in rows),
    )


def write_receiver_replies() -> str:
    """Return the page of the replies that receivers give by their published rules."""
    profiles = load_profiles()
    sections = []
    for first in (one for one in profiles if one.audience == EVERY_SENDER):
        bulk = next((one for one in profiles if one.name == first.name and one != first), None)
        shown = first if bulk is None else bulk
        ids = code(first.id) + (f", for senders of bulk mail {code(shown.id)}" if bulk else "")
        who = f" Bulk mail: {shown.audience}." if bulk else ""
        rows = [
            (
                code(rule.id),
                cell(rule.note),
                rule.action.value,
                cell("; ".join(filter(None, (str(rule.reply or ""), *rule.also)))),
                cell(str(rule.later or "")),
                rule.stage.value,
                f"[{rule.source.date}]({rule.source.url})",
            )
            for rule in shown.rules
        ]
        head = ("Rule", "Broken if", "Action", "Replies", "DNS is silent", "Stage", "Source")
        sections.append(f"## {first.name}\n\nReceiver {ids}.{who}\n\n{table(head, rows)}")
    words = (
        "The rules from which a report says what receivers would reply, each with its source and"
        " the date of the version that was read. The first reply is the strictest that the"
        " receiver publishes; others follow. Rules whose id contains `.bulk-` apply to senders of"
        " bulk mail only. `{author}` and `{ip}` stand for values of the mail."
        " [See the replies of receivers](../how-to/see-the-replies-of-receivers.md) is the guide.\n"
    )
    return page(
        "Replies of receivers",
        "`mailcheck/checks/quality/receiver_replies.toml`",
        words,
        *sections,
    )


def write_sending_services() -> str:
    """Return the page of the catalogue of sending services."""
    rows = [
        (
            cell(one.name),
            code(one.id),
            one.role.value,
            ", ".join(map(code, dict.fromkeys((*one.hosts, *one.envelopes, *one.signers)))),
            "<br>".join(
                code(" ".join((record.name or "@", record.type, record.value)))
                for record in one.records
            ),
            f"<{one.guide}>" if one.guide else "",
            ", ".join(_source(number, text) for number, text in enumerate(one.sources, 1))
            or "from memory",
            one.read.isoformat(),
        )
        for one in load_services()
    ]
    head = ("Service", "Key", "Role", "Recognized by", "Records", "Its page", "Sources", "Read")
    return page(
        "Sending services",
        "`mailcheck/checks/receiver_reports/sending_services.toml`",
        f"{len(rows)} services that send or forward mail for others. Parts of a record in angle"
        " brackets differ by account; the service shows them. Other records are shown in a plan"
        " only after our own evaluation has confirmed them.\n",
        table(head, rows),
    )


def _source(number: int, text: str) -> str:
    link = text if text.startswith("https://") else _HOST_MAP
    return f"[{number}]({link})"


_HOST_MAP = (
    "https://github.com/domainaware/parsedmarc/blob/master/parsedmarc/resources/maps"
    "/base_reverse_dns_map.csv"
)


def write_blocklists() -> str:
    """Return the page of blocklists with their contents, weights and terms."""
    catalogue = parse_catalogue(packaged_catalogue_text())
    rows = [
        (
            cell(one.name) + ("" if one.is_enabled else " (switched off)"),
            code(one.zone),
            ", ".join(sorted(kind.value for kind in one.query_zones)),
            _profiles(one, catalogue.address_profile, catalogue.domain_profile),
            str(one.weight),
            f"{one.daily_budget:,}" if one.daily_budget is not None else "no limit",
            f"<{one.delist_url}>" if one.delist_url else "",
            cell(one.access),
        )
        for one in sorted(catalogue.blocklists, key=lambda one: (-one.weight, one.name))
    ]
    head = ("List", "Zone", "Knows", "Asked about", "Weight", "A day", "Removal", "Terms")
    tiers = [
        (f"{tier.weight} and more", f"{tier.tenths / 10:.1f}", cell(tier.reason))
        for tier in LISTING_TIERS
    ]
    return page(
        "Blocklists",
        "`mailcheck/checks/dnsbl/blocklists.toml`",
        f"{len(catalogue.address_profile)} are asked about an address,"
        f" {len(catalogue.domain_profile)} about a domain.\n",
        table(head, rows),
        "What a listing takes off a mail's score, by the weight of the list:\n",
        table(("Weight", "Points", "Why"), tiers),
    )


def _profiles(one: Blocklist, *profiles: Sequence[Blocklist]) -> str:
    named = zip(("addresses", "domains"), profiles, strict=True)
    return ", ".join(name for name, profile in named if one in profile)


# Generated parts of other pages, and all pages.


def write_snippets_into_pages() -> dict[Path, str]:
    """Return the pages that contain snippets, with their current text."""
    urls = PublicUrls("http://127.0.0.1:8080")
    texts = {one.name: one.text for one in write_snippets(urls, "", "127.0.0.1:2587")}
    pages = [page for page in list_pages() if any(block.snippet for block in read_blocks(page))]
    return {page: with_snippets(page, texts) for page in pages}


def write_providers() -> str:
    """Return the page of the provider APIs."""
    sections = [
        section
        for name, parts in groupby(PROVIDERS, lambda one: one.name)
        for section in _write_provider(name, list(parts))
    ]
    words = (
        "How each SDK is redirected, and which parts of the API are the same here, close to"
        " those of the provider, or not offered. [Catch mail sent over a provider's API]"
        "(../how-to/catch-api-mail.md) is the guide.\n"
    )
    return page("Provider APIs", "`mailcheck/web/providers/`", words, *sections)


def _write_provider(name: str, parts: Sequence[Provider]) -> Iterator[str]:
    host = f"127.0.0.1:8080/providers/{name}"
    yield f"## {parts[0].title}\n\nBase URL: `http://{host}`\n"
    switches = [switch for one in parts for switch in one.switches]
    rows = [(cell(sdk), text.format(base=f"http://{host}", host=host)) for sdk, text in switches]
    yield table(("SDK", "How it is redirected"), rows)
    support = [row for one in parts for row in one.support]
    ignored = ", ".join(code(field) for one in parts for field in one.ignored)
    if ignored:
        support.append(Support(ignored, Like.NOT_OFFERED, "accepted and ignored"))
    yield table(
        ("Part", "Here", "Note"), [(row.what, row.like.value, cell(row.note)) for row in support]
    )
    found = proofs(name)
    routes = dict.fromkeys(f"{route.method} {route.path}" for one in parts for route in one.routes)
    yield table(
        ("Route", "Proven by"), [(code(one), _proof(found, one, Like.SAME)) for one in routes]
    )
    for one in parts:
        named = [(text, *one.status_of(kind)) for kind, text in MEANINGS.items()]
        errors = [(what, str(status), code(written)) for what, status, written in named]
        yield table(("Error", "Status", "Code"), errors)


_EXAMPLE_MAIL = "\r\n".join(
    (
        "From: Ana <ana@sender.example>",
        "To: Support <support+9@app.example>",
        "Subject: Re: Invoice 9",
        "Date: Sun, 29 Nov 2026 09:00:00 +0000",
        "Message-ID: <m1@sender.example>",
        "In-Reply-To: <m0@app.example>",
        'Content-Type: multipart/mixed; boundary="b"',
        "",
        "--b",
        "Content-Type: text/plain; charset=utf-8",
        "",
        "Paid.",
        "",
        "> When?",
        "--b",
        "Content-Type: image/png",
        "Content-Disposition: inline; filename=dot.png",
        "Content-ID: <dot>",
        "Content-Transfer-Encoding: base64",
        "",
        "iVBORw0KGgo=",
        "--b--",
        "",
    )
).encode()

_LONGEST_EXAMPLE = 120
"""Maximum number of characters of a value in an example."""


def write_inbound_formats() -> str:
    """Return the page of the formats of inbound routes."""
    rows = format_rows("http://127.0.0.1:8080/providers")
    behaviour = [
        (
            code(name.value),
            cell(row.title),
            "recipient" if row.provider.is_per_recipient else "mail",
            _statuses(row.provider.final),
            _schedule(row.provider.schedule),
            f"{row.provider.seconds:g} s",
            _limit(row.provider.most_octets),
        )
        for name, row in rows.items()
    ]
    words = (
        "The requests that an application gets from a route of each format, and the effect of its"
        " answers. A status from 200 to 299 ends a delivery. All statuses are retried that are not"
        " in the"
        " column *Final*, and so is a missing answer. The schedule is that of the provider, divided"
        " by the `speed` of the route. Resend, SNS, Mailtrap and Rails document their time-outs;"
        " the others are ours. [Test an application that receives mail]"
        "(../how-to/test-incoming-mail.md) is the guide.\n"
    )
    heads = ("Format", "Product", "A request for each", "Final", "Retries", "Time-out", "Limit")
    return page(
        "Formats of inbound mail",
        "`mailcheck/web/providers/inbound/`",
        words,
        table(heads, behaviour),
        *(section for name, row in rows.items() for section in _write_format(name, row)),
    )


def _write_format(name: InboundFormat, row: FormatRow) -> Iterator[str]:
    faults = ", ".join(code(fault.value) for fault in InboundFault if fault in row.provider.faults)
    notes = "".join(f"* {note}\n" for note in row.notes)
    yield (
        f"## {row.title}\n\nFormat: {code(name.value)}. Faults: {faults}.\n\n"
        f"Authentication: {row.authentication}.\n\n{notes}"
    )
    if row.provider.write is not None:
        yield _write_example(row.provider.write, name)


def _write_example(write: WriteInboundRequest, name: InboundFormat) -> str:
    """Return the body of a request with short values."""
    at = parse_instant("2026-11-29T09:00:01Z")
    mail = InboundMail(
        InboundMailId("019ac8f0-1234-7abc-8def-0123456789ab"),
        AccountId(""),
        "bounce@sender.example",
        ("support+9@app.example",),
        _EXAMPLE_MAIL,
        at,
    )
    route = InboundRoute(
        InboundRouteId("abcdefghijklm"),
        AccountId(""),
        "",
        "support*@app.example",
        name,
        "http://127.0.0.1:3000/inbound",
        "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX",
        at,
    )
    moment = InboundMoment(InboundDeliveryId("019ac8f0-1234-7abc-8def-00000000d001"), at)
    request = write(mail, route, moment)
    kind = dict(request.headers)["Content-Type"]
    if "json" in kind or kind.startswith("text/plain"):
        value = _shortened(json.loads(request.body))
        body, language = json.dumps(value, indent=2, ensure_ascii=False), "json"
    elif kind == "message/rfc822":
        body, language = request.body.decode().replace("\r\n", "\n"), "text"
    else:
        body, language = "\n".join(_form_lines(kind, request.body)), "text"
    return f"`POST {request.url}`, `Content-Type: {kind}`\n\n```{language}\n{body}\n```\n"


def _shortened(value: Any) -> Any:
    """Return a JSON value with long texts cut."""
    if isinstance(value, dict):
        return {key: _shortened(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_shortened(one) for one in value]
    if isinstance(value, str) and len(value) > _LONGEST_EXAMPLE:
        return f"{value[:_LONGEST_EXAMPLE]}..."
    return value


def _form_lines(kind: str, body: bytes) -> Iterator[str]:
    """Yield the fields of a form in lines, with the names and sizes of files."""
    form = read_form(Posting("POST", "", {"content-type": kind}, body))
    for name, value in form.fields:
        line = " ".join(value.split())
        shown = f"{line[:_LONGEST_EXAMPLE]}..." if len(line) > _LONGEST_EXAMPLE else line
        yield f"{name} = {shown}"
    for file in form.files:
        yield f"{file.name} = {file.filename} ({file.content_type}, {len(file.data)} bytes)"


def _statuses(found: Collection[int | None]) -> str:
    """Return statuses as ranges."""
    numbers = sorted(status for status in found if status is not None)
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][-1] == number - 1:
            ranges[-1] = [ranges[-1][0], number]
        else:
            ranges.append([number])
    shown = ["-".join(map(str, one)) for one in ranges]
    return ", ".join([*shown, *(["no answer"] if None in found else [])])


def _schedule(seconds: Sequence[int]) -> str:
    """Return the intervals of retries, equal ones together."""
    if not seconds:
        return "none"
    groups = [(interval, len(list(same))) for interval, same in groupby(seconds)]
    shown = ", ".join(
        f"{_interval(interval)}{f' ({count} times)' if count > 1 else ''}"
        for interval, count in groups
    )
    return f"{len(seconds)}: after {shown}"


def _interval(seconds: int) -> str:
    for unit, name in ((3_600, "h"), (60, "min")):
        if seconds % unit == 0:
            return f"{seconds // unit} {name}"
    return f"{seconds} s"


def _limit(octets: int) -> str:
    if octets == NO_LIMIT:
        return "not documented"
    unit, name = (1_048_576, "MiB") if octets >= 1_048_576 else (1_024, "KiB")
    return f"{octets // unit} {name}"


def write_facades() -> str:
    """Return the page of the APIs of other mail testers."""
    sections = []
    for facade in FACADES:
        base = facade.base or "on a listener of its own, see `[mailpit] listen`"
        sections.append(f"## {facade.title}\n\nBase path: {code(facade.base) or base}.\n")
        found = proofs(facade.name)
        rows = [
            (code(route), one.like.value, cell(one.note), _proof(found, route, one.like))
            for one in sorted(facade.routes, key=_place_of)
            for route in [f"{one.method} {one.path}"]
        ]
        sections.append(table(("Route", "Here", "Note", "Proven by"), rows))
    words = (
        "How near each route of another product's API is to the original here: the same, close, or"
        " not offered, with the reason. The last column names the calls of other products' clients"
        " that prove it, see [Which clients are tested](clients.md).\n\n"
        "Routes that delete are stricter than the products: a"
        " parameter or a field that the route does not know, an empty value, and a body that it"
        " does not read are errors, and nothing is deleted. So an unset variable never deletes"
        " everything.\n"
    )
    return page("Compatible APIs", "`mailcheck/web/compatible/`", words, *sections)


def _place_of(route: Route[Any]) -> tuple[bool, str, str]:
    """Return the key by which routes are sorted: those that are not offered come last."""
    return route.like is Like.NOT_OFFERED, route.path, route.method


def _proof(found: Mapping[str, Sequence[str]], route: str, like: Like) -> str:
    """Return the calls that prove a route, or that no call does."""
    if like is Like.NOT_OFFERED and route not in found:
        return ""
    return cell("; ".join(found.get(route, ("no tested client calls it",))))


def write_clients() -> str:
    """Return the page of the clients whose calls are tested."""
    runs = [(client, recorded_run(client)) for client in CLIENTS]
    overview = [
        (
            f"[{one.name}](#{slug(one.name)})",
            titles()[one.product],
            run.version,
            *(str(sum(call.outcome is kind for call in run.calls)) for kind in Outcome),
        )
        for one, run in runs
    ]
    sections = [
        f"## {client.name}\n\n"
        + table(
            ("Call", "Request", "Result"),
            [
                (code(call.call), code(call.route), _result(call))
                for call in run.calls
                if call.outcome is not Outcome.REFUSED
            ],
        )
        + "\n"
        + table(
            ("Refused", "Reason"),
            [(", ".join(map(code, calls)), cell(why)) for why, calls in _refusals(run)],
        )
        for client, run in runs
    ]
    words = (
        "Which clients of other products are run against mailcheck before a release, in which"
        " versions, and what each of their calls does. `as documented`: the call returned what the"
        " client and its product document. `refused`: mailcheck does not offer it, and the client"
        " shows the reason. `differs`: the client shows a difference.\n\n"
        "`make interop` installs the clients and repeats the calls. It fails if a result is not"
        " the one on this page. `make client-calls` records the results and this page again."
        " [Compatible APIs](compatible.md) and [Provider APIs](providers.md) name the calls by"
        " route.\n"
    )
    head = ("Client", "Product", "Version", *(kind.value.capitalize() for kind in Outcome))
    return page(
        "Which clients are tested",
        "the last run in `tests/interop/client_calls/results/`",
        words,
        table(head, overview),
        *sections,
    )


def titles() -> Mapping[str, str]:
    """Return the name of each product whose clients are tested."""
    return {one.name: one.title for one in (*FACADES, *PROVIDERS)}


def slug(title: str) -> str:
    """Return the anchor of a heading."""
    return re.sub(r"[^a-z0-9-]", "", title.lower().replace(" ", "-"))


def _refusals(run: ClientRun) -> Iterable[tuple[str, list[str]]]:
    """Return the calls that were refused for each reason."""
    found: dict[str, list[str]] = {}
    for call in run.calls:
        if call.outcome is Outcome.REFUSED:
            found.setdefault(call.why, []).append(call.call)
    return found.items()


def _result(call: CallResult) -> str:
    return cell(f"{call.outcome.value}: {call.why}" if call.why else call.outcome.value)


def write_pages() -> dict[str, str]:
    """Return the generated pages by file name."""
    house = House(config_in_memory())
    document = load_document()
    pages = {
        "options.md": write_options(),
        "commands.md": write_commands(),
        "routes.md": write_routes(document),
        "shapes.md": write_shapes(document),
        "scopes.md": write_scopes(house),
        "tools.md": write_tools(house),
        "metrics.md": write_metrics(house),
        "topics.md": write_topics(),
        "findings.md": write_findings(),
        "blocklists.md": write_blocklists(),
        "sending-services.md": write_sending_services(),
        "receiver-replies.md": write_receiver_replies(),
        "providers.md": write_providers(),
        "inbound-formats.md": write_inbound_formats(),
        "compatible.md": write_facades(),
        "clients.md": write_clients(),
    }
    house.close()
    return pages


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in write_pages().items():
        (FOLDER / name).write_text(text, "utf-8")
    for path, text in write_snippets_into_pages().items():
        path.write_text(text, "utf-8")
    PRICES.write_text(write_prices(), "utf-8")
