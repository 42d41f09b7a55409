"""Hostile calls to everything that strangers can reach, and the cost of each call.

A stranger may have signed up, so calls carry the key and the session of an account, and the
arguments that the API description gives as an example. The names in them are hostile: a domain that
answers each query with ten others, a mail full of signatures and links.
"""

import json
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any

from msgspec import structs
from twisted.internet.testing import StringTransport

from mailcheck.assembly.doors.agents import build_tools
from mailcheck.assembly.doors.compatible import build_open
from mailcheck.assembly.doors.late import LateDoor
from mailcheck.assembly.mail_programs import imap_factory, pop3_factory
from mailcheck.assembly.reachable import COSTS
from mailcheck.assembly.running.services import mail_factory
from mailcheck.assembly.workers import Workers
from mailcheck.config.options import CompatibleOptions, Config, MailpitOptions, WebOptions
from mailcheck.connections.policies import offer_no_tls
from mailcheck.core.audit import Actor
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.inbound import InboundFormat, ReadyMail
from mailcheck.imap.parsing import COMMANDS as IMAP_COMMANDS
from mailcheck.imap.pop3 import COMMANDS as POP3_COMMANDS
from mailcheck.operations.accounts.confirm import FRESH_MINUTES
from mailcheck.operations.inbound.manage_routes import RouteSettings
from mailcheck.operations.inbound.send_mail import Letter
from mailcheck.smtp.verbs import VERBS
from mailcheck.store.inbound_store import InboundFilter
from mailcheck.web.dashboard.addresses import MINE
from mailcheck.web.site.application import Application, Route
from mailcheck.web.site.costs import Cost
from mailcheck.workers.scheduling import DirectWorker
from tests.corpus.report_files import document, gzipped
from tests.fakes.memory_zone import MemoryZone
from tests.house import House, config_in_memory, result_of, run
from tests.web.compatible import mailosaur, mailslurp
from tests.web.compatible.sites import Requests
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.conftest import CHEAP
from tests.web.mcp.agent import APPS, STATELESS, TASKS, Agent
from tests.web.oauth.program import Program, add_client, register
from tests.web.provider_requests import TEXT, encode, filled, headers_for, sample
from tests.web.raw_http import RawHttp, read_answer, request
from tests.web.reporting import store_report

DOMAIN = "hostile.example"
NONSENSE = "x" * 39

OPTIONAL = ("q", "refresh", "reporter")
"""Optional parameters that are sent nevertheless."""

SPENDING = ("delete", "revoke", "expunge", " move")
"""Words of entry points that delete something which other calls need."""

_MANY = range(10)
_ZONE: Mapping[str, Mapping[str, list[str]]] = {
    DOMAIN: {
        "A": [f"8.8.4.{n}" for n in _MANY],
        "MX": [f"{n} mx{n}.{DOMAIN}." for n in _MANY],
        "TXT": [f"v=spf1 {' '.join(f'include:i{n}.{DOMAIN}' for n in _MANY)} mx a ptr ?all"],
    },
    **{f"i{n}.{DOMAIN}": {"TXT": ["v=spf1 a:b.hostile.example mx ~all"]} for n in _MANY},
    **{f"mx{n}.{DOMAIN}": {"A": [f"8.8.8.{n}"], "AAAA": [f"2001:4860::{n}"]} for n in _MANY},
    f"_dmarc.{DOMAIN}": {"TXT": ["v=DMARC1; p=reject; rua=mailto:a@other.example"]},
}

_ROOTS = ("_ready", "_dashboard")
"""The applications below the root."""

_SIGNATURE = (
    b"DKIM-Signature: v=1; a=rsa-sha256; d=%d.hostile.example; s=s; h=from; bh=eA==; b=eA==\r\n"
)
_LINKS = b"".join(
    b'<a href="https://%d.hostile.example/?token=%d">x</a>\r\n' % (n, n) for n in _MANY
)
MAIL = (
    b"From: a@hostile.example\r\nSubject: hello\r\nContent-Type: multipart/mixed; boundary=b\r\n"
    + b"".join(_SIGNATURE % n for n in range(20))
    + b"\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>code 123456</p>"
    + _LINKS * 20
    + b"\r\n--b\r\nContent-Type: text/plain\r\n"
    + b"Content-Disposition: attachment; filename=a.txt\r\n\r\nx\r\n--b--\r\n"
)


IMAP_ARGUMENTS = {
    "ENABLE": " CONDSTORE",
    "ID": " NIL",
    "SELECT": " INBOX",
    "EXAMINE": " INBOX",
    "LIST": ' "" *',
    "LSUB": ' "" *',
    "STATUS": " INBOX (MESSAGES UNSEEN SIZE)",
    "APPEND": " INBOX {1000}",
    "EXPUNGE": " 1:*",
    "SEARCH": " TEXT code",
    "FETCH": " * (ENVELOPE BODYSTRUCTURE BODY[])",
    "STORE": r" 1:* +FLAGS (\Deleted)",
    "COPY": " 1:* Trash",
    "MOVE": " 1:* Trash",
    **dict.fromkeys(("CREATE", "DELETE", "SUBSCRIBE", "UNSUBSCRIBE"), " Tags/x"),
    "RENAME": " Tags/x Tags/y",
}
"""The arguments of commands of IMAP."""


def _site_config() -> Config:
    """Return the configuration of an application in which everything can be reached."""
    return config_in_memory(
        accounts=CHEAP,
        web=WebOptions(oauth="on"),
        mailpit=MailpitOptions(project="mallory"),
        compatible=CompatibleOptions(hold=0),
    )


def _routes_of(resource: Any) -> Iterator[tuple[str, Route[Any]]]:
    """Yield each route below a resource, with its method and path."""
    if isinstance(resource, LateDoor):
        resource = resource.open()
    assert isinstance(resource, Application)
    for (method, path), (_, route) in zip(resource.paths, resource.routes, strict=True):
        shown = re.sub(r"<[^<>]*?(\w+)>", r"{\1}", path)
        yield f"{method} {shown}", route


@cache
def declared_costs() -> Mapping[str, Cost]:
    """Return the declared cost of each entry point, by its name."""
    house = House(_site_config())
    root = vars(house.site.resource)
    others = {id(other): other for other in root["_late"].values()}
    applications = [*(root[name] for name in _ROOTS), *others.values()]
    open_listener = build_open(house.assembly, offer_no_tls).site.resource
    found = [
        *((name, route.cost) for one in applications for name, route in _routes_of(one)),
        *((f"open {name}", route.cost) for name, route in _routes_of(open_listener)),
        *((f"tool {one.name}", one.cost) for one in build_tools(house.assembly)),
        *COSTS.items(),
    ]
    house.close()
    costs = dict(found)
    assert len(costs) == len(set(found)), "two costs of one entry point"
    return MappingProxyType(costs)


class CountedWorker(DirectWorker):
    """A worker that counts the calls of one process."""

    def __init__(self, name: str, counter: Counter[str]) -> None:
        self._name = name
        self._counter = counter

    def run(self, call: Callable[[], Any], owner: str = "") -> Any:
        """Run the call now."""
        self._counter[self._name] += 1
        return super().run(call, owner)


class OpenListener(Requests):
    """The listener without API keys."""

    def __init__(self, house: House) -> None:
        self.site = build_open(house.assembly, offer_no_tls).site
        self.clock = house.clock
        super().__init__(house, self.site.resource)


class Target:
    """An application to attack, in which each entry point can be called by its name."""

    def __init__(self) -> None:
        self.work: Counter[str] = Counter()
        workers = Workers(
            DirectWorker(),
            DirectWorker(),
            content=CountedWorker("content", self.work),
            passwords=CountedWorker("passwords", self.work),
            analysis=CountedWorker("analysis", self.work),
            large=CountedWorker("large", self.work),
            requests=CountedWorker("requests", self.work),
            imports=CountedWorker("imports", self.work),
        )
        self.house = House(_site_config(), workers, zone=MemoryZone(_ZONE))
        self.house.is_restored = True
        self._open = OpenListener(self.house)
        # The listener without keys has the account, so only the operator gives out its name.
        accounts = self.house.assembly.accounts
        run(accounts.sign_in.set_password(run(accounts.keep.add("mallory")), "correct horse"))
        self._sign_in()
        agents = Browser(self.house, "192.0.2.12")
        agents.sign_up("connects agents")
        self.program = Program(agents, add_client(self.house)[0].id)
        self._signed_in_at = self.house.clock.seconds()
        self.house.account = run(accounts.keep.find("mallory"))
        self.house.use_every_scope()
        self._calls = 0
        self.message = self._scored = ""
        self.restore()
        self.addresses = self.house.get("/reports").json["addresses"]
        run(self.house.assembly.reports.runner.start())
        run(self.house.assembly.tests.runner.start())
        self.description = self.house.get("/openapi.json").json
        self.agent = Agent(self.house, version=STATELESS, extensions={**APPS, **TASKS})
        self.tools = self.agent.tools()
        self.house.pass_time(1)

    def prepare(self) -> None:
        """Replace what calls have used up. No page asks who a person is after a recent sign-in."""
        house = self.house
        if not self.is_whole:
            self.restore()
        if house.clock.seconds() - self._signed_in_at > FRESH_MINUTES * 60 / 2:
            self._signed_in_at = house.clock.seconds()
            self._sign_in()
            self.program.browser = Browser(house, self.program.browser.peer)
            self.program.browser.sign_in("connects agents")

    def _sign_in(self) -> None:
        """Sign in. The browser then sends paths as they are, and has the token for all forms."""
        self.browser = Browser(self.house)
        self.browser.sign_in("mallory")
        self.browser.open("/keys")
        self.form_token, self.browser.project = self.browser.page.form_token, ""

    def restore(self) -> None:
        """Create one of everything an account can have, and a session; let a minute pass."""
        house = self.house
        house.pass_time(61)
        if not self._exists("/inbox/messages/", self.message):
            house.receive(raw=MAIL)
            self.message = house.get("/inbox/messages").json["messages"][0]["id"]
        if not self._exists("/test/", self._scored):  # an analysis takes long
            scored = house.ask("POST", "/test/generate").answer().json
            house.receive(scored["email"], raw=MAIL)
            self._scored = scored["testId"]
        self.test = house.ask("POST", "/test/generate").answer().json
        if not self.browser.is_signed_in:
            self._sign_in()
        self._settle()
        message = house.get(f"/inbox/messages/{self.message}").json
        self._calls += 1
        self.is_whole = True
        self._names = {
            "message_id": self.message,
            "delivery_id": message["deliveryId"],
            "attachment_id": message["attachments"][0]["id"],
            "token": message["shareUrl"].rpartition("/")[2],
            "test_id": self._scored,
            "other_id": self._scored,
            "webhook_id": self._first("webhooks", "/inbox/webhooks", url=f"https://{DOMAIN}/"),
            "route_id": self._first(
                "routes", "/inbound/routes", url=f"https://{DOMAIN}/", to="*", format="postmark"
            ),
            "watch_id": self._first("watches", "/watches", target=DOMAIN),
            "key_id": run(house.assembly.accounts.keep.issue_key(house.account, "")).key.id,
            **self._routed(),
            "report_id": store_report(house, f"report {self._calls}").id,
            "name": "x",
            "domain": DOMAIN,
            "alert_id": "x",
            **dict.fromkeys(("project", "project_id"), MINE),
            "account_id": "x",
            "invitation_id": "x",
        }

    def _routed(self) -> dict[str, str]:
        """Return the ids of a route and of a mail for it."""
        inbound, account_id = self.house.assembly.inbound.operations, self.house.account.id
        routes = run(inbound.routes.of_account(account_id))
        if not routes:
            settings = RouteSettings(to="support@*", url=f"https://{DOMAIN}/")
            made = inbound.routes.create(
                account_id, InboundFormat.MAILCHECK, settings, Actor("mallory")
            )
            routes = [run(made)]
        route_id = routes[0].id
        # The mails of an account that wait for their delivery are limited.
        for listed in run(inbound.read.deliveries(account_id, InboundFilter(route_id), 1)):
            return {"route_id": route_id, "mail_id": str(listed.delivery.mail_id)}
        sent = run(inbound.send.send(account_id, route_id, Letter(ready=ReadyMail.EMPTY)))
        return {"route_id": route_id, "mail_id": sent.mail_id}

    def _exists(self, path: str, name: str) -> bool:
        return bool(name) and self.house.get(path + name).status == 200

    def _first(self, kind: str, path: str, **wanted: str) -> str:
        """Return the id of the first object of a kind, creating it if there is none."""
        found = self.house.get(path).json[kind]
        if not found:
            headers = {"Content-Type": "application/json"}
            data = json.dumps(wanted).encode()
            found = [self.house.ask("POST", path, data=data, headers=headers).answer().json]
        return str(found[0]["id"])

    # Entry points.

    def others(self) -> Iterator[str]:
        """Yield the names of all entry points that are not a route, a page or a tool."""
        yield from (f"POP3 {command.decode()}" for command in POP3_COMMANDS)
        yield from (f"IMAP {command}" for command in IMAP_COMMANDS)
        for port in ("mail", "submission"):
            yield from (f"{port} {verb.decode()}" for verb in VERBS)
        yield from (f"address {name}" for name in self._mailboxes())
        config = self.house.assembly.runtime.config
        for section in structs.fields(config):
            names = [one.name for one in structs.fields(getattr(config, section.name))]
            ports = [name for name in names if name.endswith("listen") or name == "manhole"]
            yield from (f"port [{section.name}] {name}" for name in ports)

    def _mailboxes(self) -> dict[str, str]:
        domain = "mailcheck.example"
        return {
            "inbox": self.house.address(),
            "inbox with a tag": self.house.address(f"tag{self._calls}"),
            "inbox with a fault tag": self.house.address("fault.rcpt-451"),
            "inbox with the tag of alerts": self.house.address("watch-alerts"),
            "unknown inbox": f"dev-nobody@{domain}",
            "deliverability test": self.test["email"],
            "DMARC reports": self.addresses["dmarc"],
            "TLS reports": self.addresses["tls"],
            "failure reports": self.addresses["failures"],
            "complaints": self.addresses["complaints"],
            "postmaster": f"postmaster@{domain}",
            "abuse": f"abuse@{domain}",
            "elsewhere": "somebody@elsewhere.example",
        }

    # Calls.

    def call(self, entry: str) -> None:
        """Call an entry point once, with the most expensive arguments."""
        self._calls += 1
        kind, _, name = entry.partition(" ")
        if any(word in entry.lower() for word in SPENDING):
            self.is_whole = False
        own = {"POP3": self._read_over_pop3, "IMAP": self._read_over_imap, "open": self._ask_openly}
        if kind == "tool":
            self.agent.call(name, self._arguments(self.tools[name]["inputSchema"]))
        elif kind in ("mail", "submission"):
            self._talk(kind, name)
        elif kind in own:
            own[kind](name)
        elif kind == "address":
            self._send(self._mailboxes()[name])
        elif kind == "port":
            return  # its commands are separate entries
        elif name.startswith(("/mailosaur/", "/mailslurp/")):
            self._ask_as_other_client(kind, name)
        elif name.startswith("/providers/"):
            self._post_to_provider(kind, name)
        elif name.startswith("/api/v1"):
            self._ask(kind, name.removeprefix("/api/v1"))
        else:
            self._browse(kind, name)
        self.house.pass_time(0.1)

    def call_open_from_outside(self, entry: str) -> int:
        """Call an entry point of the open listener from a public address; return the status."""
        method, path = entry.split(" ")[1:]
        visit = RawHttp(self._open, "8.8.8.8")
        visit.send(request(re.sub(r"{\w+}", NONSENSE, path), method=method))
        self.house.pass_time(0.1)
        return read_answer(visit.received(), method)[0].status

    def call_as_stranger(self, entry: str) -> None:
        """Call an entry point over HTTP once, without a key or a session."""
        method, _, path = entry.partition(" ")
        path = re.sub(r"{\w+}", NONSENSE, path)
        data = b"\x1f\x8b" * 1000 if method in ("POST", "PUT", "PATCH") else None
        self.house.open(f"{path}?domain={DOMAIN}&q=x", method, data=data).hang_up()
        self.house.pass_time(0.1)

    def _ask(self, method: str, path: str) -> None:
        shown = re.sub(r"{(\w+?)(?:_(\w))?(\w*)}", _camel, path)
        shown = shown.replace("{messageId}", "{id}")
        described = self.description["paths"].get(shown, {}).get(method.lower(), {})
        query = {
            one["name"]: self._value(one["name"], one.get("schema", {}), one.get("example"))
            for one in described.get("parameters", ())
            if one["in"] == "query" and (one.get("required") or one["name"] in OPTIONAL)
        }
        options: dict[str, Any] = {"params": {k: str(v) for k, v in query.items()}}
        content = described.get("requestBody", {}).get("content", {}).get("application/json", {})
        if content:
            options["data"] = json.dumps(self._hostile(content.get("example", {}))).encode()
            options["headers"] = {"Content-Type": "application/json"}
        self.house.ask(method, self._filled(path), **options).hang_up()

    def _browse(self, method: str, path: str) -> None:
        path = self._filled(path)
        if method in ("GET", "OPTIONS"):
            cookies = "; ".join("=".join(one) for one in self.browser.cookies.items())
            visit = RawHttp(self.house, self.browser.peer)
            visit.send(
                request(
                    f"{path}?domain={DOMAIN}&check={DOMAIN}&whole=true&q=x",
                    f"Cookie: {cookies}",
                    method=method,
                )
            )
            self.house.pass_time(0.1)
            visit.hang_up()
            return
        if path.startswith("/tls-reports"):
            self._post_report()
            return
        form = {"domain": DOMAIN, "url": f"https://{DOMAIN}/{self._calls}", "tag": "x"}
        form |= {
            "form-token": self.form_token,
            "watch": DOMAIN,
            "address": f"a{self._calls}@{DOMAIN}",
        }
        form |= {"password": "correct horse", "name": f"mallory {self._calls}"}
        form |= {"target": f"n{self._calls}.{DOMAIN}", "reporter": "google.com"}
        if path in ("/authorize", "/token", "/register", "/revoke"):
            self._connect(path)
            return
        if path == "/sign-in":
            Browser(self.house).sign_in("mallory")
            return
        answer = self.browser.post(path, **form)
        is_expired = b"form has expired" in answer.body
        assert not (is_expired and path.startswith("/p/")), "no work was tried: the token is old"
        if path in ("/sign-out", "/account/password"):
            self._sign_in()

    def _post_to_provider(self, method: str, path: str) -> None:
        posted = None
        if method == "POST":
            address = self.house.address(f"tag{self._calls}")
            links = "".join(f"<a href='https://{n}.{DOMAIN}/?token={n}'>x</a>" for n in range(200))
            value = json.dumps(sample(path, address)).replace(TEXT, f"{TEXT} {links}")
            posted = encode(path, json.loads(value))
        target = filled(self._filled(path) if method == "GET" else path)
        headers = headers_for(target, self.house.key, posted or b"", method)
        self.house.open(target, method, data=posted, headers=headers).hang_up()

    def _ask_as_other_client(self, method: str, path: str) -> None:
        """Call a facade: its servers and inboxes are the tag of the message in the inbox."""
        place = path.split("/")[3 if path.startswith("/mailosaur") else 2]
        own = {"servers": "abcd1234", "files": f"{self.message}.1", "inboxes": "abcd1234"}
        given: dict[str, Any] = {"server": "abcd1234", "inboxId": "abcd1234", "name": "x"}
        given |= {"subject": "x", "body": "x", "match": "ANY", "url": f"https://{DOMAIN}/x"}
        given |= {"pattern": "(x+)+y", "customPatterns": ["(x+)+y"], "timeout": 0}
        given |= {"matches": [{"field": "SUBJECT", "should": "MATCH", "value": "(x+)+y"}]}
        client = mailslurp.Client if path.startswith("/mailslurp") else mailosaur.Client
        names = {"{id}": own.get(place, self.message), "{file}": f"{self.message}.1"}
        for name, value in {**names, "{hook}": self._names["webhook_id"]}.items():
            path = path.replace(name, value)
        query = "server=abcd1234&inboxId=abcd1234&itemsPerPage=500"
        data = json.dumps(given).encode()
        self.house.open(
            f"{path}?{query}", method, data=data, headers=client(self.house).headers
        ).hang_up()

    def _ask_openly(self, name: str) -> None:
        """Call the listener that needs no key, as a client on this machine."""
        method, path = name.split(" ")
        mail = self._names["delivery_id"]
        people = [{"Email": f"a{n}@{DOMAIN}"} for n in _MANY]
        given: dict[str, Any] = {"IDs": [mail], "Tags": [f"t{n}" for n in range(100)], "Name": "x"}
        given |= {"From": people[0], "To": people, "Subject": "x", "Text": "x", "HTML": "<p>x</p>"}
        given |= {"Sender": {"ErrorCode": 451, "Probability": 0}}
        self._open.ask("PUT", "/api/v1/tags", json={"IDs": [mail], "Tags": ["x"]}).answer()
        for name, value in (("id", mail), ("part", "1"), ("tag", "x")):
            path = path.replace(f"{{{name}}}", value)
        query = "?query=x%20-subject:(x+)%2By%20tag:x&kind=containing&limit=500&start=0"
        self._open.ask(method, path + query, json=given).hang_up()

    def _connect(self, path: str) -> None:
        """Connect a program as far as one endpoint, which is called last."""
        if path == "/register":
            uris = [f"https://{DOMAIN}/{'x' * 950}{number}" for number in range(10)]
            register(self.house, {"client_name": "x" * 60, "redirect_uris": uris})
            return
        code = self.program.code(resource=None)
        if path == "/authorize":
            return
        answer = self.program.exchange(code)
        if answer.status == 200:
            # An account has a maximum number of grants.
            self.program.revoke(answer.json["refresh_token"])

    def _post_report(self) -> None:
        path = "/" + self.addresses["tlsUrl"].split("/", 3)[3]
        report = document("google.json").replace(b"google", b"g%d" % self._calls)
        self.house.open(path, "POST", data=gzipped(report)).hang_up()

    def _talk(self, port: str, verb: str) -> None:
        factory = mail_factory(
            self.house.assembly, offer_no_tls, is_submission=port == "submission"
        )
        protocol = factory.buildProtocol(None)
        protocol.makeConnection(StringTransport())
        known, unknown = self.house.address(), "dev-nobody@mailcheck.example"
        lines = [b"EHLO x", b"MAIL FROM:<>", f"RCPT TO:<{known}>".encode()]
        argument = {"RCPT": f" TO:<{unknown}>", "MAIL": " FROM:<a@b.example>", "BDAT": " 2 LAST"}
        argument |= {"AUTH": " PLAIN AGEAYg==", "EHLO": " x", "HELO": " x"}
        lines.append(f"{verb}{argument.get(verb, '')}".encode())
        if verb == "DATA":
            lines.append(MAIL + b".")
        protocol.dataReceived(b"\r\n".join(lines) + b"\r\n")
        protocol.dataReceived(b"x\r\n")
        self.house.pass_time(0.1)
        protocol.connectionLost()

    def _read_over_imap(self, command: str) -> None:
        protocol = imap_factory(self.house.assembly, offer_no_tls, is_tls=False).make()
        protocol.makeConnection(StringTransport())
        if command == "LOGIN":
            protocol.dataReceived(f"a LOGIN mallory {NONSENSE}\r\n".encode())
        elif command == "AUTHENTICATE":
            response = _plain("mallory", NONSENSE)
            protocol.dataReceived(f"a AUTHENTICATE PLAIN {response}\r\n".encode())
        else:
            protocol.dataReceived(f"a LOGIN any {self.house.key}\r\nb SELECT INBOX\r\n".encode())
            argument = IMAP_ARGUMENTS.get(command.removeprefix("UID "), "")
            protocol.dataReceived(f"c {command}{argument}\r\n".encode())
            if command == "APPEND":
                protocol.dataReceived(MAIL[:1_000] + b"\r\n")
        self.house.pass_time(0.1)
        protocol.connectionLost()

    def _read_over_pop3(self, command: str) -> None:
        protocol = pop3_factory(self.house.assembly, offer_no_tls, is_tls=False).make()
        protocol.makeConnection(StringTransport())
        argument = {"TOP": " 1 9", "AUTH": f" PLAIN {_plain('mallory', NONSENSE)}"}
        argument |= {"PASS": f" {NONSENSE}", "USER": " mallory"}
        if command not in ("AUTH", "PASS", "USER", "STLS", "UTF8"):
            protocol.dataReceived(f"AUTH PLAIN {_plain('', self.house.key)}\r\n".encode())
            argument = {"RETR": " 1", "DELE": " 1"} | argument
        if command == "PASS":
            protocol.dataReceived(b"USER mallory\r\n")
        protocol.dataReceived(f"{command}{argument.get(command, '')}\r\n".encode())
        self.house.pass_time(0.1)
        protocol.connectionLost()

    def _send(self, address: str) -> None:
        try:
            self.house.receive(address, raw=MAIL, sender=f"a@{DOMAIN}")
        except ExpectedFailure:
            return

    def _filled(self, path: str) -> str:
        return re.sub(r"{(\w+)}", lambda found: self._names.get(found[1], NONSENSE), path)

    def _arguments(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        wanted = schema.get("required", ())
        return {
            name: self._value(name, one, None)
            for name, one in schema.get("properties", {}).items()
            if name in wanted
        }

    def _value(self, name: str, schema: Mapping[str, Any], example: Any) -> Any:
        known = {
            "domain": DOMAIN,
            "ip": "8.8.4.1",
            "query": DOMAIN,
            "target": DOMAIN,
            "id": self.message,
            "testId": self.test["testId"],
            "q": "text:x",
            "refresh": "true",
        }
        return known.get(name, NONSENSE if example is None else example)

    def _hostile(self, example: Any) -> Any:
        """Replace the names of an example by hostile ones that differ in each call."""
        text = json.dumps(example).replace("example.com", f"n{self._calls}.{DOMAIN}")
        return json.loads(text)

    # Cost.

    def cost(self, call: Callable[[str], None], entry: str, times: int) -> Cost:
        """Call an entry point a number of times, and return the cost of all calls together."""
        rows, size, asked = self._rows(), self._size(), len(self.house.zone.asked)
        self.work.clear()
        for _ in range(times):
            call(entry)
        spent = Cost(
            rows=max(0, self._rows() - rows),
            octets=max(0, self._size() - size),
            questions=len(self.house.zone.asked) - asked,
            **self.work,
        )
        # Work that is left must not count for the next entry point.
        self._settle()
        return spent

    def _settle(self) -> None:
        """Derive the contents of all mails, and complete all analyses."""
        assembly = self.house.assembly
        for delivery_id in result_of(assembly.mail.content_store.underived(100_000)):
            run(assembly.mail.contents.of(delivery_id))
        self.house.pass_time(5)

    def _rows(self) -> int:
        """Return the number of rows of all tables."""
        ((total,),) = self.house.sqlite.connection.execute(self._count).fetchall()
        return int(total)

    @cached_property
    def _count(self) -> str:
        """The statement that counts the rows of all tables."""
        tables = self.house.sqlite.connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name != 'schema_version' "
            "AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
        )
        return "SELECT " + " + ".join(f'(SELECT COUNT(*) FROM "{name}")' for (name,) in tables)

    def _size(self) -> int:
        """Return the size of the database in octets."""
        connection = self.house.sqlite.connection
        ((pages,),) = connection.execute("PRAGMA page_count").fetchall()
        ((free,),) = connection.execute("PRAGMA freelist_count").fetchall()
        ((size,),) = connection.execute("PRAGMA page_size").fetchall()
        return int((pages - free) * size)

    def close(self) -> None:
        """Close the application."""
        self.house.close()


def _camel(found: re.Match[str]) -> str:
    return "{" + found[1] + (found[2] or "").upper() + found[3] + "}"


def _plain(name: str, password: str) -> str:
    """Return a response of SASL PLAIN."""
    return b64encode(f"\0{name}\0{password}".encode()).decode()
