"""Record the responses of all doors over a filled store, and compare two versions.

    .venv/bin/python -m benchmarks.answers record now.json
    .venv/bin/python -m benchmarks.answers compare old.json now.json

Record an older version in its own checkout, with this file:

    PYTHONPATH=. .venv/bin/python .../benchmarks/answers.py record old.json

A recording calls every route and every tool with good and bad input: for mails of the corpus, for
a sender without faults and senders with faults, and for domains in every state. It also calls every
route of the other doors (`benchmarks.door_answers`). Clock, DNS and randomness are the
deterministic ones of the tests, so two recordings of one version are equal.
Identifiers are replaced by numbers in the order of their appearance. The comparison lists
differences by response and field, and each kind of change once with an example, so that a
maintainer can sort them into intended and unintended ones.
"""

import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.door_answers import record_doors
from mailcheck.checks.dns_answers import DnsStatus
from tests.corpus.corpus_mails import load_part
from tests.fakes.mail_signer import RSA
from tests.fakes.sample_mails import make_mail
from tests.operations.scored_mails import MAIL, received, zone_with
from tests.web.checking import GOOD
from tests.web.mcp.agent import HANDSHAKE, STATELESS, Agent
from tests.web.scored_house import ScoredHouse

CORPUS_STEP = 4
"""Step through the corpus: only every fourth mail is received."""

CHAPTER = 600
"""Seconds. Each part of a recording begins at a multiple of this time of day."""

EXAMPLE = 160
"""Maximum number of characters of a value that a comparison shows."""

SIGNED = RSA.sign(MAIL)

MAILS: Mapping[str, bytes] = {
    "signed": SIGNED,
    "altered": SIGNED.replace(b"Monday", b"Sunday"),
    "unsigned": MAIL,
    "other author": MAIL.replace(b"ann@sender.example", b"ann@other.example"),
    "two authors": MAIL.replace(b"From: Ann", b"From: Bob <bob@other.example>, Ann"),
    "no author": MAIL.replace(b"From: Ann Example <ann@sender.example>\r\n", b""),
    "silent domain": MAIL.replace(b"ann@sender.example", b"ann@silent.example"),
    "signed twice": RSA.sign(SIGNED),
    "no mail": b"\x00\xff\r\n\r\nwhat?",
    "broken signature": b"DKIM-Signature: v=1\r\n" + MAIL,
    "news": make_mail(),
    "news, signed": RSA.sign(make_mail()),
    "empty": b"",
    "no body": b"From: ann@sender.example\r\n\r\n",
}

CLIENTS = ("8.8.4.10", "8.8.4.99", "10.0.0.5", "127.0.0.1", "2001:4860::10")

RECORDS: Mapping[str, Mapping[str, list[str]]] = {
    **{name: {kind: list(values) for kind, values in node.items()} for name, node in GOOD.items()},
    "bare.example": {"A": ["8.8.4.20"]},
    "null.example": {"MX": ["0 ."], "TXT": ["v=spf1 -all"]},
    "loose.example": {
        "MX": ["10 mx1.good.example."],
        "TXT": ["v=spf1 include:_a.loose.example a mx ptr ?all"],
    },
    "_a.loose.example": {"TXT": ["v=spf1 ip4:8.8.0.0/16 ~all"]},
    "_dmarc.loose.example": {"TXT": ["v=DMARC1; p=none; pct=50"]},
    "broken.example": {
        "MX": ["10 nowhere.example.", "20 mx1.good.example."],
        "TXT": ["v=spf1 ipv4:1.2.3.4 -all", "v=spf1 -all"],
    },
    "_dmarc.broken.example": {"TXT": ["v=DMARC1; p=rejct"]},
    "endless.example": {"MX": ["10 mx1.good.example."], "TXT": ["v=spf1 include:endless.example"]},
    "toomany.example": {
        "TXT": ["v=spf1 " + " ".join(f"include:i{n}.example" for n in range(12)) + " -all"]
    },
    **{f"i{n}.example": {"TXT": ["v=spf1 -all"]} for n in range(12)},
    "policies.example": {"MX": ["10 mx1.good.example."], "TXT": ["v=spf1 mx -all"]},
    "_mta-sts.policies.example": {"TXT": ["v=STSv1; id=1"]},
    "_smtp._tls.policies.example": {"TXT": ["v=TLSRPTv1; rua=mailto:a@policies.example"]},
    "99.4.8.8.zen.spamhaus.org": {"A": ["127.0.0.2"], "TXT": ["https://example.org/why"]},
    "99.4.8.8.b.barracudacentral.org": {"A": ["127.255.255.254"]},
}
DOMAINS = (
    "good.example",
    "sub.good.example",
    "bare.example",
    "null.example",
    "loose.example",
    "broken.example",
    "endless.example",
    "toomany.example",
    "policies.example",
    "sender.example",
    "absent.example",
    "silent.example",
    "failing.example",
    "xn--mnchen-3ya.example",
    "com",
    "8.8.4.10",
    "not a name",
    "a..b",
    "localhost",
)

_NAMED = frozenset(("testId", "deliveryId", "marker", "mailbox"))
"""Fields with random values; other random values are recognised by their form."""

_DRAWN = re.compile(
    r"(?<=/share/)[\w-]+|(?<=sign-)\w{10,}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
)
_ID_IN_PATH = re.compile(r"(?<=/messages/)[^/]+|(?<=/v1/test/)(?!generate)[^/]+|(?<=/share/).+")

SHORTEST_RANDOM = 10
"""Minimum number of characters of a random value. Shorter ones are counters, for example the
numbers of attachments."""


class Recording:
    """Responses by the name of their request, with numbers in place of random values."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}

    def keep(self, name: str, answer: Any) -> None:
        """Store one response."""
        assert name not in self.answers, name
        text = json.dumps(answer, ensure_ascii=False)
        drawn = [value for key, value in _fields(answer) if key in _NAMED]
        drawn += _DRAWN.findall(text)
        numbers = {value: f"ID-{number}" for number, value in enumerate(dict.fromkeys(drawn))}
        # Longest first, since the token of a test contains its id.
        for value in sorted(numbers, key=len, reverse=True):
            if len(value) >= SHORTEST_RANDOM:
                text = text.replace(value, numbers[value])
        self.answers[name] = json.loads(text)


def _fields(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the name of the field and the text of each string in a JSON value."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(inner, str):
                yield name, inner
            yield from _fields(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _fields(inner)


class Recorder:
    """Sends requests to the application and records the responses."""

    def __init__(self) -> None:
        zone = zone_with({**RECORDS})
        zone.failing["failing.example"] = DnsStatus.SERVFAIL
        for name in ("silent.example", "_dmarc.silent.example"):
            zone.failing[name] = DnsStatus.TIMEOUT
        self.scored = ScoredHouse(zone)
        self.house = self.scored.house
        self.kept = Recording()

    def turn_clock(self) -> None:
        """Advance the clock to the next full ten minutes, so that all versions use equal times."""
        self.house.pass_time(CHAPTER - self.house.clock.seconds() % CHAPTER)

    def ask(self, name: str, method: str, path: str, **options: Any) -> Any:
        """Send a REST request and return the JSON of the response, or ``None``."""
        asked = self.house.ask(method, path, **options)
        return self.answered(name, asked)

    def ask_by_agent(self, name: str, tool: str, version: str = HANDSHAKE, **given: Any) -> Any:
        """Call an MCP tool."""
        agent = Agent(self.house, version=version)
        reply = agent.call(tool, {key.rstrip("_"): value for key, value in given.items()})
        self._let_pass(lambda: reply.is_over)
        body = bytes(reply.body).decode("utf-8", "replace")
        try:
            messages = reply.messages
        except AssertionError as error:
            messages = [str(error)]
        self.kept.keep(f"mcp {tool}: {name}", {"status": reply.status, "messages": messages})
        return messages[-1] if messages else body

    def answered(self, name: str, asked: Any) -> Any:
        """Record the response to a running request and return its JSON."""
        self._let_pass(lambda: asked.is_answered)
        path = _ID_IN_PATH.sub("{id}", asked.path.partition("?")[0])
        named = f"{asked.method} {path}: {name}"
        try:
            answer = asked.answer()
        except AssertionError as error:
            self.kept.keep(named, {"judged": str(error)[:400]})
            return None
        try:
            body = answer.json
        except ValueError:
            body = answer.body.decode("utf-8", "replace")
        headers = {key: text for key, text in answer.headers.items() if not _is_counted(key)}
        self.kept.keep(named, {"status": answer.status, "headers": headers, "body": body})
        return body

    def _let_pass(self, is_over: Callable[[], bool]) -> None:
        """Advance the clock in steps until the response has arrived."""
        for _ in range(800):
            if is_over():
                return
            self.house.pass_time(0.1)
        raise SystemExit("no answer came")


def _is_counted(header: str) -> bool:
    return header.startswith("x-ratelimit") or header in ("date", "etag")


def record() -> Mapping[str, Any]:
    """Send all requests and return the recorded responses."""
    recorder = Recorder()
    _domains(recorder)
    recorder.turn_clock()
    _empty_inbox(recorder)
    recorder.turn_clock()
    ids = _inbox(recorder)
    recorder.turn_clock()
    _lists(recorder)
    _waits(recorder)
    _bad_input(recorder, ids[0])
    recorder.turn_clock()
    _tests(recorder)
    recorder.turn_clock()
    _tools_listed(recorder)
    _deleting(recorder, ids)
    recorder.scored.close()
    record_doors(recorder.kept.keep)
    return recorder.kept.answers


def _domains(recorder: Recorder) -> None:
    for domain in DOMAINS:
        for tool, name in (
            ("mx-check", "domain"),
            ("blacklist-check", "query"),
            ("reputation", "domain"),
            ("domain", "domain"),
        ):
            path = f"/tools/{tool}?{name}={domain.replace(' ', '%20')}"
            recorder.ask(domain, "GET", path)
        recorder.ask_by_agent(domain, "check_domain", domain=domain)
        recorder.ask_by_agent(domain, "check_mx", domain=domain)
        recorder.ask_by_agent(domain, "check_blocklists", query=domain)
    selectors = "/tools/reputation?domain=good.example&selector=default&ip=8.8.4.99"
    recorder.ask("with selector and address", "GET", selectors)
    recorder.ask("with selector", "GET", "/tools/domain?domain=good.example&selector=default")
    for address in CLIENTS:
        recorder.ask(address + " as address", "GET", f"/tools/blacklist-check?query={address}")
    recorder.ask("all", "GET", "/tools/blacklists")


def _empty_inbox(recorder: Recorder) -> None:
    recorder.ask("empty", "GET", "/inbox")
    recorder.ask("untagged", "GET", "/inbox/address")
    recorder.ask("tagged", "GET", "/inbox/address?tag=Sign.Up")
    recorder.ask("unique", "GET", "/inbox/address?tag=sign&unique=true")
    recorder.ask("empty", "GET", "/inbox/messages")
    recorder.ask("in vain", "GET", "/inbox/wait?timeout=1&tag=x")
    recorder.ask_by_agent("tagged", "new_address", tag="Agent")
    recorder.ask_by_agent("untagged", "new_address")
    recorder.ask_by_agent("empty", "list_messages")
    recorder.ask_by_agent("empty", "wait_for_message", tag="x", timeout=1)


def _inbox(recorder: Recorder) -> list[str]:
    """Receive mails, read each in every way, and return the ids of the messages."""
    ids = []
    corpus = {one.id: one.raw for part in ("tuning", "held_out") for one in load_part(part)}
    some = {name: corpus[name] for name in sorted(corpus)[::CORPUS_STEP]}
    for number, (name, raw) in enumerate({**MAILS, **some}.items()):
        client = CLIENTS[number % len(CLIENTS)]
        recorder.house.pass_time(1 - recorder.house.clock.seconds() % 1)
        mail = received(raw_message=raw, client_ip=client)
        recorder.scored.deliver(recorder.house.address(f"tag{number % 7}"), mail)
        listed = recorder.house.get("/inbox/messages?limit=1").json["messages"]
        message_id = listed[0]["id"]
        ids.append(message_id)
        _read(recorder, f"{name} from {client}", message_id, is_whole=name in MAILS)
    return ids


def _read(recorder: Recorder, name: str, message_id: str, *, is_whole: bool) -> None:
    path = f"/inbox/messages/{message_id}"
    message = recorder.ask(name, "GET", path)
    recorder.ask_by_agent(name, "get_message", id=message_id)
    recorder.ask_by_agent(name, "extract", id=message_id)
    if not is_whole:
        return
    recorder.ask(name, "GET", f"{path}/raw")
    recorder.ask(name + " exact", "GET", f"{path}/raw", headers={"Accept": "message/rfc822"})
    recorder.ask(name, "GET", f"{path}/html")
    for attachment in (message or {}).get("attachments", ()):
        recorder.ask(f"{name} {attachment['id']}", "GET", f"{path}/attachments/{attachment['id']}")
    recorder.ask_by_agent(f"{name} in full", "get_message", id=message_id, full=True)
    recorder.ask_by_agent(f"{name} stateless", "get_message", STATELESS, id=message_id)
    recorder.ask_by_agent(name, "share_link", id=message_id)
    share = (message or {}).get("shareUrl", "").rpartition("/")[2]
    recorder.answered(f"{name} shared", recorder.house.open(f"/share/{share}"))
    renewed = recorder.ask(name, "POST", f"{path}/share")
    if renewed:
        again = renewed["shareUrl"].rpartition("/")[2]
        recorder.answered(f"{name} shared again", recorder.house.open(f"/share/{again}"))
    recorder.answered(f"{name} old link", recorder.house.open(f"/share/{share}"))


def _lists(recorder: Recorder) -> None:
    for query in (
        "",
        "limit=3",
        "limit=3&page=2",
        "limit=100",
        "page=1000",
        "tag=tag3",
        "tag=TAG3&limit=2",
        "from=ann@sender.example",
        "from=sender",
        "subject=minutes",
        "to=dev",
        "q=code",
        "q=482913",
        "q=%22Your%20code%22",
        "since=2026-11-21T12:00:01.000Z",
    ):
        recorder.ask(query, "GET", f"/inbox/messages?{query}")
    recorder.ask("filled", "GET", "/inbox")
    pages: list[dict[str, Any]] = [{}, {"limit": 3}, {"tag": "tag3"}, {"from_": "ann"}]
    for number, given in enumerate([*pages, {"q": "code", "limit": 2}]):
        recorder.ask_by_agent(str(number), "list_messages", **given)


def _waits(recorder: Recorder) -> None:
    for query in (
        "timeout=1",
        "timeout=1&tag=tag2",
        "timeout=1&tag=tag2&since=2026-11-21T12:00:00.000Z",
        "timeout=1&since=2026-11-21T12:00:00.000Z&subject=minutes",
        "timeout=1&since=2026-11-21T12:00:00.000Z&from=nobody",
    ):
        recorder.ask(query, "GET", f"/inbox/wait?{query}")
    since = "since=2026-11-21T12:00:00.000Z"
    recorder.ask("two", "GET", f"/inbox/wait/many?count=2&timeout=1&{since}")
    recorder.ask("two in vain", "GET", f"/inbox/wait/many?count=2&timeout=1&{since}&tag=x")
    recorder.ask("none", "GET", "/inbox/wait/none?seconds=1")
    recorder.ask("one too many", "GET", f"/inbox/wait/none?seconds=1&{since}")
    cursor = recorder.house.get("/inbox").json["cursor"]
    recorder.ask("after the last", "GET", f"/inbox/wait?timeout=1&after={cursor}")
    waiting = recorder.house.ask("GET", f"/inbox/wait?timeout=9&after={cursor}&tag=woken")
    recorder.scored.deliver(recorder.house.address("woken"), received())
    recorder.answered("woken", waiting)
    recorder.ask_by_agent("what is there", "wait_for_message", tag="woken", timeout=1)
    recorder.ask_by_agent("stateless", "wait_for_message", STATELESS, tag="nobody", timeout=1)
    recorder.ask_by_agent("in vain", "wait_for_message", tag="waken", timeout=1)


def _bad_input(recorder: Recorder, message_id: str) -> None:
    for path in (
        "/inbox/wait?timeout=0",
        "/inbox/wait?timeout=61",
        "/inbox/wait?timeout=ten",
        "/inbox/wait?after=what",
        "/inbox/wait?since=yesterday",
        "/inbox/wait?tag=a%20b",
        "/inbox/wait?nosuch=1",
        "/inbox/wait?tag=a&tag=b",
        "/inbox/messages?limit=0",
        "/inbox/messages?limit=1000",
        "/inbox/messages?page=0",
        "/inbox/messages?limit=x",
        "/inbox/messages/00000000-0000-4000-8000-000000000000",
        "/inbox/messages/what",
        f"/inbox/messages/{message_id}/attachments/99",
        "/inbox/address?tag=" + "a" * 100,
        "/inbox/address?unique=maybe",
        "/test/what",
        "/test/00000000-0000-4000-8000-000000000000",
        "/test?limit=0",
        "/tools/mx-check",
        "/tools/mx-check?domain=",
        "/tools/mx-check?domain=good.example&x=1",
        "/tools/reputation?domain=good.example&selector=a%20b",
        "/tools/reputation?domain=good.example&ip=what",
        "/tools/reputation?domain=good.example&ip=10.0.0.1",
        "/tools/blacklist-check?query=10.0.0.1",
        "/tools/nothing",
        "/nothing",
    ):
        recorder.ask("bad " + path, "GET", path)
    recorder.ask("without a key", "GET", "/inbox", key=None)
    recorder.ask("with a wrong key", "GET", "/inbox", key="mc_wrong")
    recorder.ask("wrong method", "PUT", "/inbox")
    recorder.ask("wrong method", "POST", "/inbox/messages")
    for tool, given in (
        ("wait_for_message", {"timeout": 0}),
        ("wait_for_message", {"timeout": "ten"}),
        ("wait_for_message", {"after": "what"}),
        ("wait_for_message", {"nosuch": 1}),
        ("get_message", {}),
        ("get_message", {"id": "what"}),
        ("get_message", {"id": "00000000-0000-4000-8000-000000000000"}),
        ("extract", {"id": "what"}),
        ("list_messages", {"limit": 0}),
        ("check_mx", {}),
        ("check_mx", {"domain": 7}),
        ("nosuch", {}),
    ):
        recorder.ask_by_agent(f"bad {json.dumps(given)}", tool, **given)


def _tests(recorder: Recorder) -> None:
    scored, first = recorder.scored, ""
    for number, (name, raw) in enumerate(MAILS.items()):
        for client in CLIENTS if number < 3 else (CLIENTS[number % len(CLIENTS)],):
            named = f"{name} from {client}"
            made = recorder.ask(named, "POST", "/test/generate")
            test_id = first = made["testId"]
            recorder.ask(f"{named} waiting", "GET", f"/test/{test_id}")
            scored.send(test_id, received(raw_message=raw, client_ip=client))
            recorder.house.pass_time(2)
            found = recorder.ask(f"{named} judged", "GET", f"/test/{test_id}")
            recorder.ask(named, "GET", f"/test/{test_id}/wait?timeout=5")
            recorder.ask_by_agent(named, "wait_for_test", testId=test_id, timeout=5)
            recorder.ask(named, "GET", f"/test/{test_id}/raw")
            share = (found or {}).get("shareUrl", "").rpartition("/")[2]
            recorder.answered(f"{named} report", recorder.house.open(f"/share/{share}"))
    proposed = {"records": [{"name": "sender.example", "type": "TXT", "value": "v=spf1 -all"}]}
    for name, body in (("good", proposed), ("bad", {"records": 7}), ("none", {})):
        text = json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        path = f"/test/{first}/preflight"
        recorder.ask(name, "POST", path, data=text, headers=headers)
    recorder.ask("again", "POST", f"/test/{first}/recheck")
    recorder.house.pass_time(2)
    recorder.ask("after recheck", "GET", f"/test/{first}")
    recorder.ask("renewed", "POST", f"/test/{first}/share")
    recorder.ask("all", "GET", "/test")
    recorder.ask("page", "GET", "/test?limit=2&page=2")
    recorder.ask_by_agent("new", "generate_test")
    message = recorder.house.get("/inbox/messages?limit=1").json["messages"][0]["id"]
    made = recorder.ask("of a message", "POST", f"/inbox/messages/{message}/test")
    recorder.house.pass_time(2)
    if made:
        recorder.ask("of a message, judged", "GET", f"/test/{made['testId']}")


def _tools_listed(recorder: Recorder) -> None:
    agent = Agent(recorder.house)
    recorder.kept.keep("mcp tools/list", agent.request("tools/list").json)
    recorder.kept.keep("mcp ping", agent.request("ping").json)
    recorder.ask("description", "GET", "/openapi.json", key=None)
    for path in ("/healthz", "/readyz", "/nothing", "/share/nothing"):
        recorder.answered("open", recorder.house.open(path))


def _deleting(recorder: Recorder, ids: list[str]) -> None:
    recorder.ask("one", "DELETE", f"/inbox/messages/{ids[0]}")
    recorder.ask("one again", "DELETE", f"/inbox/messages/{ids[0]}")
    recorder.ask_by_agent("one", "delete_message", id=ids[1])
    recorder.ask_by_agent("one again", "delete_message", id=ids[1])
    recorder.ask("of a tag", "DELETE", "/inbox/messages?tag=tag3")
    recorder.ask("all", "DELETE", "/inbox/messages")
    recorder.ask("all deleted", "GET", "/inbox/messages")


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value of a JSON document with its path; list items are numbered."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from leaves(inner, f"{path}.{name}")
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{number}]")
    else:
        yield path, value


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Print the differences by route or tool and field, with their number and examples."""
    found: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for name in old.keys() | new.keys():
        route, _, case = name.partition(": ")
        if name not in old or name not in new:
            found[route, "", "only " + ("new" if name in new else "old")].append(case)
            continue
        before, after = dict(leaves(old[name])), dict(leaves(new[name]))
        for path in before.keys() | after.keys():
            kind = "new" if path not in before else "gone" if path not in after else "other"
            if kind == "other" and before[path] == after[path]:
                continue
            field = re.sub(r"\[\d+\]", "[]", path)
            shown = " -> ".join(
                json.dumps(side[path], ensure_ascii=False)[:EXAMPLE]
                for side in (before, after)
                if path in side
            )
            found[route, field, kind].append(f"{case}: {shown}")
    for (route, field, kind), cases in sorted(found.items()):
        print(f"{route} {field} {kind} x{len(cases)}")
        for case in sorted(set(cases), key=len)[:2]:
            print(f"    {case}")
    same = sum(old[name] == new[name] for name in old.keys() & new.keys())
    print(f"{len(old)} answers before, {len(new)} now, {same} the same")


def main() -> None:
    """Run the command: record or compare."""
    match sys.argv[1:]:
        case ["record", file]:
            answers = record()
            Path(file).write_text(json.dumps(answers, ensure_ascii=False, indent=1), "utf-8")
            print(f"{len(answers)} answers")
        case ["compare", old, new]:
            compare(*(json.loads(Path(one).read_text("utf-8")) for one in (old, new)))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
