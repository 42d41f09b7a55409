"""Count the bytes and tokens of the results of MCP tools, beside an earlier version.

    bash scripts/install-mcp-clients
    .venv/bin/python -m benchmarks.mcp_tokens --before 807d62fb

Its argument is any commit, whose files are unpacked into a temporary folder for this file.
The tools read ten typical mails on the application in memory, so two runs of a version are equal.
A result has two forms: its text and its structured content. Some clients show the model one of
them, some both. Tokens are those of ``o200k_base`` (other models differ, but not the ratio).
``--write`` puts the table into docs/explanation/tokens.md.

Targets: the wait for a mail with a code and a link of 120 characters at most 900 bytes, and a list
of 20 mails at most 4,096 bytes, both forms together; the list of tools at most 3,600 tokens, with
``?tools=inbox`` at most 1,400.
"""

import argparse
import json
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping
from email.message import EmailMessage
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.interop.mcp_clients.installed import NODE, node_environment

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explanation" / "tokens.md"
BEGIN, END = "<!-- table of benchmarks/mcp_tokens.py -->\n", "<!-- end of the table -->\n"
SINCE = "807d62fb"
"""The last version before results became short."""

COUNTER = """
const { countTokens } = require("gpt-tokenizer/encoding/o200k_base");
const texts = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(texts.map((text) => countTokens(text))));
"""

Forms = tuple[str, str]
"""The text of a result, and its structured content as compact JSON."""

WORDS = (
    "We are glad that you are here. Your account is nearly ready, and this message has all that "
    "you need to go on. "
)
LINK = "https://app.example.com/confirm?token=" + "7f3aZk91Qm0x" * 6 + "&user=4711"
"""A link of 120 characters."""


def _mail(subject: str, text: str, html: str = "", sender: str = "") -> EmailMessage:
    message = EmailMessage()
    message["From"] = sender or "Example Shop <no-reply@shop.example.com>"
    message["To"], message["Subject"] = "ann@example.net", subject
    message["Date"], message["Message-ID"] = "Sat, 21 Nov 2026 10:00:00 +0000", "<1@example.com>"
    if text:
        message.set_content(text)
    if html and text:
        message.add_alternative(html, subtype="html")
    elif html:
        message.set_content(html, subtype="html")
    return message


def _with_files(message: EmailMessage, *names: str) -> EmailMessage:
    for name in names:
        message.add_attachment(
            b"%PDF-1.7 " * 900, maintype="application", subtype="pdf", filename=name
        )
    return message


def _page(sections: int, links: int) -> str:
    rows = "".join(
        f'<tr><td style="padding:12px;font-family:Arial,sans-serif;color:#333333">'
        f"<h2>Offer {number}</h2><p>{WORDS}</p></td></tr>"
        for number in range(sections)
    )
    anchors = "".join(
        f'<a href="https://track.example.com/c/{number}/{"a9" * 40}">See offer {number}</a> '
        for number in range(links)
    )
    return f"<html><body><table>{rows}</table>{anchors}</body></html>"


def typical_mails() -> Mapping[str, bytes]:
    """Return ten mails that applications send, by their names."""
    button = f'<p>Confirm your address:</p><a href="{LINK}">Confirm</a>'
    mails = {
        "sign-up, code and link": _mail(
            "Confirm your address", f"{WORDS}\n\nYour code is 482913.\n\nOr open {LINK}\n"
        ),
        "sign-up, HTML": _mail("Welcome to Example", f"{WORDS}\n{LINK}\n", f"{WORDS}{button}"),
        "password reset": _mail(
            "Reset your password", "", f"<p>{WORDS}</p><a href='{LINK}'>Reset password</a>"
        ),
        "one-time code": _mail("771204 is your code", "Your sign-in code is 771204.\n"),
        "magic link": _mail("Your sign-in link", f"Sign in: {LINK}\nIt ends in 15 minutes.\n"),
        "marketing, 60 KB": _mail("The offers of this week", "", _page(220, 60)),
        "newsletter, 40 links": _mail("What happened in November", WORDS * 20, _page(20, 40)),
        "invoice, PDF": _with_files(
            _mail("Your invoice 2026-1187", f"{WORDS}\nTotal: 42.00 EUR\n"), "invoice.pdf"
        ),
        "order, German": _mail(
            "Ihre Bestellung ist unterwegs: Bücher für Zürich",
            "Guten Tag,\n\nIhre Bestellung Nr. 4711 ist unterwegs. Grüße aus Köln!\n" * 4,
            sender="Buchhandlung Müller <bestellung@buch.example.com>",
        ),
        "alert, long text": _mail(
            "[prod] 40 checks failed", "ERROR worker-7 could not reach 10.0.0.5:5432\n" * 400
        ),
    }
    return {name: message.as_bytes() for name, message in mails.items()}


def _switched_zone() -> Any:
    """Return a class of zones whose name servers can be switched off."""
    from twisted.internet.defer import succeed

    from mailcheck.checks.dns_answers import DnsAnswer, DnsStatus
    from tests.fakes.memory_zone import MemoryZone

    class SwitchedZone(MemoryZone):
        is_off = False

        def lookup(self, question: Any) -> Any:
            failed = DnsAnswer(question, DnsStatus.SERVFAIL)
            return succeed(failed) if self.is_off else super().lookup(question)

    return SwitchedZone


class Recorder:
    """Calls the tools of the version that is on the import path."""

    def __init__(self) -> None:
        from tests.house import House
        from tests.operations.scored_mails import PERFECT
        from tests.web.checking import GOOD
        from tests.web.mcp.agent import Agent
        from tests.web.scored_house import ScoredHouse

        self.scored = ScoredHouse(_switched_zone()({**PERFECT, **GOOD}))
        self.house: House = self.scored.house
        self.agent = Agent(self.house)
        self.results: dict[str, Forms] = {}

    def call(self, name: str, tool: str, **arguments: Any) -> Any:
        """Call a tool, record both forms of its result, and return the structured content."""
        given = {key.rstrip("_"): value for key, value in arguments.items()}
        reply = self.agent.call(tool, given)
        for _ in range(100):
            if reply.is_over:
                break
            self.house.pass_time(1)
        result = reply.result
        assert not result["isError"], result
        text = "\n".join(one.get("text", "") for one in result["content"])
        structured = result["structuredContent"]
        self.results[name] = text, compact(structured)
        return structured

    def everything(self) -> Mapping[str, Any]:
        """Return the arguments of ``get_message`` for all of a mail."""
        taken = self.agent.tools()["get_message"]["inputSchema"]["properties"]
        if "include" not in taken:
            return {"full": True}
        return {"include": taken["include"]["items"]["enum"], "length": 20_000}

    def record(self) -> Mapping[str, Forms]:
        """Call all tools."""
        self._inbox()
        self._checks()
        self._listed()
        self.scored.close()
        return self.results

    def _inbox(self) -> None:
        self.call("new_address", "new_address", tag="signup")
        self.call("wait_for_message, timed out", "wait_for_message", tag="signup", timeout=1)
        mails = typical_mails()
        everything = self.everything()
        for number, raw in enumerate(mails.values()):
            self.house.receive(self.house.address("signup"), raw=raw)
            name = list(mails)[number]
            self.call(f"wait_for_message: {name}", "wait_for_message", after=f"c{number:x}")
        ids = [one["id"] for one in self.house.get("/inbox/messages").json["messages"]][::-1]
        for name, message_id in zip(mails, ids, strict=True):
            self.call(f"get_message: {name}", "get_message", id=message_id)
        for name, message_id in zip(mails, ids, strict=True):
            self.call(f"get_message, all: {name}", "get_message", id=message_id, **everything)
        for name, message_id in list(zip(mails, ids, strict=True))[:1]:
            self.call(f"extract: {name}", "extract", id=message_id)
        files = self.house.get(f"/inbox/messages/{ids[7]}").json["attachments"]
        self.call("get_attachment", "get_attachment", id=ids[7], attachmentId=files[0]["id"])
        self.call("share_link", "share_link", id=ids[0])
        for raw in mails.values():
            self.house.receive(self.house.address("signup"), raw=raw)
        self.call("list_messages, 20 mails", "list_messages")
        self.call("wait_for_message, count=10", "wait_for_message", after="ca", count=10)
        self.call("delete_message", "delete_message", id=ids[0])

    def _checks(self) -> None:
        self.call("check_domain, good", "check_domain", domain="good.example", selector="default")
        self.call("check_mx", "check_mx", domain="good.example")
        self.call("check_blocklists, clean", "check_blocklists", query="8.8.4.10")
        self.call("generate_test", "generate_test")
        test_id, _ = self.scored.scored()
        self.call("wait_for_test", "wait_for_test", testId=test_id)
        self.call("get_reports", "get_reports")
        body = b'{"target": "good.example"}'
        watch = self.house.ask("POST", "/watches", data=body).answer().json
        self.house.ask("POST", f"/watches/{watch['id']}/run").answer()
        self.call("list_watches", "list_watches")
        self.call("get_watch", "get_watch", watchId=watch["id"])
        zone: Any = self.house.zone
        zone.publish("_dmarc.good.example", "TXT")
        self.house.pass_time(4_000)
        self.call("check_domain, no DMARC", "check_domain", domain="good.example")
        zone.is_off = True
        self.call("check_blocklists, no answers", "check_blocklists", query="8.8.4.99")

    def _listed(self) -> None:
        for name, path in (("tools/list", "/mcp"), ("tools/list, inbox", "/mcp?tools=inbox")):
            listed = self.agent.post(
                {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}, path=path
            ).result["tools"]
            self.results[name] = compact(listed), ""
        params = {"protocolVersion": "2025-11-25", "capabilities": {}}
        told = self.agent.request("initialize", params).result
        self.results["instructions"] = told["instructions"], ""


def compact(value: object) -> str:
    """Write JSON as clients do."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def record_before(revision: str) -> Mapping[str, Forms]:
    """Record an earlier version in a temporary folder with its files."""
    archive = subprocess.run(
        ["git", "archive", revision], cwd=ROOT, check=True, capture_output=True
    ).stdout
    with TemporaryDirectory(prefix="mailcheck-before-") as folder:
        with tarfile.open(fileobj=BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
        done = subprocess.run(
            [sys.executable, __file__, "--record"],
            cwd=folder,
            env={"PYTHONPATH": folder, "PATH": "/usr/bin:/bin", "PYTHONSAFEPATH": "1"},
            check=True,
            capture_output=True,
            text=True,
        )
    return {name: tuple(forms) for name, forms in json.loads(done.stdout).items()}


def count_tokens(texts: list[str]) -> list[int]:
    """Return the number of tokens of each text."""
    done = subprocess.run(
        [NODE, "-e", COUNTER],
        input=json.dumps(texts),
        env=node_environment(),
        check=True,
        capture_output=True,
        text=True,
    )
    found: list[int] = json.loads(done.stdout)
    return found


Sizes = tuple[int, int, int, int]
"""The bytes of both forms, and their tokens."""


def sizes_of(results: Mapping[str, Forms]) -> Mapping[str, Sizes]:
    """Return the sizes of results."""
    tokens = iter(count_tokens([form for forms in results.values() for form in forms]))
    return {
        name: (len(text.encode()), len(structured.encode()), next(tokens), next(tokens))
        for name, (text, structured) in results.items()
    }


def table(now: Mapping[str, Sizes], before: Mapping[str, Sizes]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| Result | bytes before | tokens before | bytes | tokens |"
    yield "|---|---|---|---|---|"
    for name, sizes in now.items():
        yield f"| {name} | {_cells(before.get(name))} | {_cells(sizes)} |"


def _cells(sizes: Sizes | None) -> str:
    if sizes is None:
        return " | "
    cells = []
    for text, structured in (sizes[:2], sizes[2:]):
        cells.append(f"{text:,} + {structured:,}" if structured else f"{text:,}")
    return " | ".join(cells)


TARGETS: Mapping[str, Callable[[Sizes], tuple[int, int]]] = {
    "wait_for_message: sign-up, code and link": lambda sizes: (sum(sizes[:2]), 900),
    "list_messages, 20 mails": lambda sizes: (sum(sizes[:2]), 4_096),
    "tools/list": lambda sizes: (sizes[2], 3_600),
    "tools/list, inbox": lambda sizes: (sizes[2], 1_400),
}
"""The measured number and the target of a result."""


def main() -> None:
    """Print the sizes of the results of this version, and of an earlier one."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--before", metavar="REVISION", default=SINCE)
    parser.add_argument("--write", action="store_true", help="put the table into the document")
    parser.add_argument("--record", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.record:
        print(json.dumps(Recorder().record()))
        return
    assert len(LINK) == 120
    now = sizes_of(Recorder().record())
    before = sizes_of(record_before(options.before))
    lines = "\n".join(table(now, before))
    print(lines)
    if options.write:
        head, _, rest = PAGE.read_text().partition(BEGIN)
        _, _, tail = rest.partition(END)
        PAGE.write_text(f"{head}{BEGIN}{lines}\n{END}{tail}")
    for name, target in TARGETS.items():
        if name in now:
            found, at_most = target(now[name])
            print(f"{name}: {found:,} (at most {at_most:,})")


if __name__ == "__main__":
    main()
