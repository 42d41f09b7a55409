"""The client libraries as users get them: downloaded from the daemon, and used."""

import importlib.util
import json
import re
import smtplib
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from email.message import EmailMessage
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.request import urlopen

import pytest

from mailcheck import clients
from mailcheck.web.site.client_libraries import CLIENT_LIBRARIES
from tests.servers.daemon import HOST, Daemon
from tests.servers.http_stub import QuietHandler, Searching, serving, serving_answers
from tests.servers.programs import find_program

pytestmark = pytest.mark.end_to_end

IN_BOTH = pytest.mark.parametrize(
    "language", ["python", pytest.param("javascript", marks=pytest.mark.interop)]
)

SIGN_UPS = 200
NODE_MODULES = Path(__file__).parents[2] / "node_modules"


def download(daemon: Daemon, name: str, folder: Path) -> Path:
    """Download a client library from the daemon."""
    path = folder / name
    with urlopen(f"http://{HOST}:{daemon.http_port}/clients/{name}", timeout=60) as response:
        path.write_bytes(response.read())
    return path


def load_module(path: Path) -> ModuleType:
    """Import a client library from a file."""
    spec = importlib.util.spec_from_file_location("downloaded", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def daemon(shared_daemon: Daemon) -> Daemon:
    """One daemon for all tests, which have separate addresses."""
    return shared_daemon


@pytest.fixture(scope="module")
def folder(daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the libraries."""
    folder = tmp_path_factory.mktemp("clients")
    for name in CLIENT_LIBRARIES:
        download(daemon, name, folder)
    return folder


@pytest.fixture(scope="module")
def library(folder: Path) -> ModuleType:
    """The Python client that the daemon serves, imported from its place in the package.

    Its coverage is measured there.
    """
    ours = Path(clients.__path__[0]) / "mailcheck_client.py"
    assert (folder / "mailcheck_client.py").read_bytes() == ours.read_bytes()
    return load_module(ours)


def url_of(daemon: Daemon) -> str:
    """Return the URL of a daemon."""
    return f"http://{HOST}:{daemon.http_port}"


@pytest.fixture
def inbox(library: ModuleType, daemon: Daemon) -> Any:
    """A client of the daemon."""
    return library.Mailcheck(url_of(daemon), daemon.key)


def sign_up(daemon: Daemon, email: str, code: str, invoice: bytes = b"") -> None:
    """Act like a program under test, and send the mail of a sign-up."""
    mail = EmailMessage()
    mail["From"], mail["To"] = "Shop <shop@example.com>", email
    mail["Subject"] = "Confirm your address"
    text = f"Your verification code is {code}.\n\n"
    mail.set_content(text + f"Or confirm here: https://shop.example.com/confirm?code={code}\n")
    if invoice:
        mail.add_attachment(invoice, maintype="application", subtype="pdf", filename="a.pdf")
    with smtplib.SMTP(HOST, daemon.smtp_port, timeout=60) as smtp:
        smtp.send_message(mail)


def test_many_sign_ups_at_once_each_get_their_own_mail(daemon: Daemon, inbox: Any) -> None:
    """200 tests at the same time, each with its own tag, read their own codes and links."""
    before = daemon.get("/inbox").headers["x-ratelimit-remaining"]

    def one_test(number: int) -> None:
        code = f"{number * 4_561 + 100_003:06d}"[-6:]
        address = inbox.new_address("signup")
        sending = threading.Thread(target=sign_up, args=(daemon, address.email, code))
        sending.start()
        mail = address.wait(timeout=50)
        sending.join()
        assert mail.code == code
        assert mail.link == f"https://shop.example.com/confirm?code={code}"

    with ThreadPoolExecutor(SIGN_UPS) as pool:
        assert list(pool.map(one_test, range(SIGN_UPS))) == [None] * SIGN_UPS
    spent = int(before) - int(daemon.get("/inbox").headers["x-ratelimit-remaining"])
    assert spent <= SIGN_UPS + 2  # one for each mail, one for the mailbox, and this one


def test_what_a_test_asks_of_its_address(daemon: Daemon, inbox: Any, library: ModuleType) -> None:
    """An address supports several mails, no mail, all mails, raw bytes and deletion."""
    address = inbox.new_address("A label: with *signs*, and longer than there is room")
    assert re.fullmatch(r"a-label-with-signs-and-l-[a-z2-7]{10}", address.tag)
    address.expect_none(seconds=1)
    for code in ("111222", "333444"):
        sign_up(daemon, address.email, code, invoice=b"%PDF " + code.encode())
    with pytest.raises(library.UnexpectedMail) as caught:
        address.expect_none(seconds=30, subject="confirm")
    assert caught.value.mail.code == "111222"
    mails = address.wait_many(2, timeout=50, has_attachment=True, text="code is")
    assert [mail.code for mail in mails] == ["111222", "333444"]
    address.expect_none(seconds=1)
    with pytest.raises(library.NoMail):
        address.wait_many(1, timeout=1)
    assert [mail["id"] for mail in address.messages()] == [mail["id"] for mail in mails[::-1]]
    assert "333444" in address.messages()[0].text
    assert inbox.new_address().messages() == []
    (attachment,) = mails[0].attachments
    assert (attachment.filename, attachment.content) == ("a.pdf", b"%PDF 111222")
    assert b"\r\nSubject: Confirm your address\r\n" in mails[0].eml()
    assert inbox.html(mails[0]["id"]) == b""
    mails[0].delete()
    assert len(address.messages()) == 1
    address.delete()
    assert address.messages() == []


def test_a_score_is_an_assertion(daemon: Daemon, inbox: Any, library: ModuleType) -> None:
    """A mail with a score that is too low fails the test and names the fixes."""
    address = inbox.new_address()
    sign_up(daemon, address.email, "482913")
    mail = address.wait()
    assert 0 <= mail.score()["score"] <= 10
    with pytest.raises(library.PoorScore, match=r"of 10, but 10\.5 is required\n  -\d"):
        mail.score(at_least=10.5)


@pytest.mark.parametrize("ending", ["", "/", "/api/v1", "/api/v1/"])
def test_the_address_of_the_service_may_name_the_api(
    daemon: Daemon, library: ModuleType, ending: str
) -> None:
    """MAILCHECK_URL works with or without its path, and a key with a trailing line break."""
    client = library.Mailcheck(url_of(daemon) + ending, f" {daemon.key}\n")
    assert re.fullmatch(r"c[0-9a-f]+", client.cursor())


def test_what_can_not_be_meant_raises(library: ModuleType) -> None:
    """An unknown filter is named with the nearest one; a broken key is neither sent nor shown."""
    client = library.Mailcheck("http://127.0.0.1:1", "mck_secret")
    with pytest.raises(TypeError, match=r"unknown filter 'sujbect'; did you mean subject\?"):
        client.wait(after="c0", sujbect="x")
    with pytest.raises(library.MailcheckError, match="line break") as caught:
        library.Mailcheck("http://127.0.0.1:1", "mck_secret\nmck_other")
    assert "mck" not in str(caught.value) + repr(client)
    with pytest.raises(library.Unreachable, match="cannot be reached"):
        client.cursor()


class PuttingOff(QuietHandler):
    """Answers each path once with 429 as over a limit, then reports the requested timeout."""

    asked: dict[str, int]
    seconds = "1"

    def do_GET(self) -> None:
        """Answer a request."""
        path = self.path.partition("?")[0]
        count = self.asked[path] = self.asked.get(path, 0) + 1
        body = json.dumps({"error": "the limit is reached", "cursor": "c1", "path": self.path})
        status = 429 if count == 1 or path.endswith("/never") else 200
        self.send_answer(body.encode(), status, "3600" if path.endswith("/never") else self.seconds)


@pytest.fixture
def busy_service() -> Iterator[str]:
    """Run a service that answers each request with 429 once, and yield its URL."""
    with serving(type("Handler", (PuttingOff,), {"asked": {}})) as address:
        yield address


SEARCHES = """
const inbox = new Mailcheck();
const address = await inbox.newAddress();
const said = ({ length, total, nextPage, notSearched }) => [length, total, nextPage, notSearched];
const lists = [
  await inbox.messages({ q: "cherry" }),
  await inbox.messages({ page: 2 }),
  await address.messages({ text: "cherry" }),
];
const ids = lists[1].map(({ id }) => id);
console.log(JSON.stringify([lists.map(said), ids, ids.constructor === Array]));
"""


@IN_BOTH
def test_a_list_says_what_it_does_not_show(
    language: str, library: ModuleType, script: Callable[..., Any]
) -> None:
    """A list has the total of matches and of unsearched messages; that of an address has all."""
    with serving(Searching) as url:
        if language == "python":
            client = library.Mailcheck(url, "mck_key")
            address = client.new_address()
            lists = [
                client.messages(q="cherry"),
                client.messages(page=2),
                address.messages(text="cherry"),
            ]
            found = [[len(a), a.total, a.next_page, a.not_searched] for a in lists]
        else:
            found, ids, is_plain = script(SEARCHES, MAILCHECK_URL=url)
            assert (ids, is_plain) == (["m100"], True)
    assert found == [[100, 101, 2, 2], [1, 101, None, 0], [101, 101, None, 2]]


SENT_FIRST = """
const inbox = new Mailcheck();
const to = process.env.RECIPIENT;
const newest = await inbox.wait({ to });
const both = await inbox.waitMany(2, { to });
const more = await inbox.waitMany(3, { to, timeout: 1 }).catch((error) => error);
const after = newest.cursor;
const last = await inbox.wait({ to, after, timeout: 1 }).catch((error) => error);
const other = await inbox.wait({ to, subject: "reset", timeout: 1 }).catch((error) => error);
console.log(JSON.stringify([
  newest.code, newest.text.length > 0, both.map((mail) => mail.code),
  more.message, last instanceof NoMail, other.seen.length,
]));
"""


@IN_BOTH
def test_a_wait_after_the_mail_was_sent_finds_it(
    language: str, library: ModuleType, daemon: Daemon, script: Callable[..., Any]
) -> None:
    """A wait without a cursor returns the newest mail of the last minutes, or explains its end."""
    to = daemon.address(f"sent-first-{language}")
    for code in ("135790", "246801"):
        sign_up(daemon, to, code)
    if language == "python":
        client = library.Mailcheck(url_of(daemon), daemon.key)
        newest = client.wait(to=to)
        both = client.wait_many(2, to=to)
        with pytest.raises(library.NoMail) as missing:
            client.wait_many(3, to=to, timeout=1)
        with pytest.raises(library.NoMail) as last:
            client.wait(to=to, after=newest["cursor"], timeout=1)
        with pytest.raises(library.NoMail) as other:
            client.wait(to=to, subject="reset", timeout=1)
        found = [
            newest.code,
            "text" in newest,
            [mail.code for mail in both],
            str(missing.value),
            last.value.status == 408,
            len(other.value.seen),
        ]
    else:
        found = script(SENT_FIRST, RECIPIENT=to)
    newest_code, is_complete, codes, problem, is_over, seen = found
    assert (newest_code, is_complete) == ("246801", True)
    assert codes == ["135790", "246801"]
    assert problem.startswith("2 of 3 matching messages arrived")
    assert is_over
    assert seen == 2


OVER_LIMIT = """
const inbox = new Mailcheck();
const { path } = await inbox.wait({ after: "c0", timeoutMs: 1200 });
await inbox.request("GET", "/inbox/wait", { timeout: 29.999 });
const refused = await inbox.request("GET", "/never").catch((error) => error);
console.log(JSON.stringify([path, refused.status, refused.message]));
"""


@IN_BOTH
def test_being_put_off_is_not_counted_as_waiting(
    language: str, library: ModuleType, busy_service: str, script: Callable[..., Any]
) -> None:
    """A client waits for Retry-After in addition to the timeout of its wait, but not an hour."""
    if language == "python":
        client = library.Mailcheck(busy_service, "mck_key")
        path = client.wait(after="c0", timeout=1.2)["path"]
        with pytest.raises(library.MailcheckError) as caught:
            client.request("GET", "/never")
        status, message = caught.value.status, str(caught.value)
    else:
        path, status, message = script(OVER_LIMIT, MAILCHECK_URL=busy_service)
    assert re.search(r"timeout=1\.(1|2)\d\d$", path), path
    assert (status, message) == (429, "the limit is reached")


EVENTS_PUT_OFF = """
const { Mailcheck: Impatient } = await import("./impatient.mjs");
for await (const mail of new Impatient().events({ after: "c0", timeoutMs: 1500 })) {
  console.log(JSON.stringify(mail.id));
  break;
}
"""


@IN_BOTH
def test_being_put_off_takes_no_time_from_events(
    language: str, library: ModuleType, folder: Path, script: Callable[..., Any]
) -> None:
    """A client that has to wait longer than its timeout still gets its mail from the stream."""
    told = b'event: message\nid: c1\ndata: {"id": "m1"}\n\n'
    with serving_answers((429, b"{}", "2"), (200, b"", ""), (200, told, "")) as url:
        if language == "python":
            mail = next(library.Mailcheck(url, "mck_key").events(after="c0", timeout=1.5))
            assert mail["id"] == "m1"
        else:
            patient = (folder / "mailcheck.mjs").read_text()
            impatient = patient.replace("const SILENCE = 45;", "const SILENCE = 1;")
            assert impatient != patient
            (folder / "impatient.mjs").write_text(impatient)
            assert script(EVENTS_PUT_OFF, MAILCHECK_URL=url) == "m1"


@pytest.fixture
def script(daemon: Daemon, folder: Path) -> Callable[..., Any]:
    """Return a function that runs JavaScript with the downloaded client and returns its JSON."""

    def run(body: str, **variables: str) -> Any:
        (folder / "script.mjs").write_text(
            'import { Mailcheck, NoMail, PoorScore, UnexpectedMail } from "./mailcheck.mjs";\n'
            + body
        )
        done = subprocess.run(
            [find_program("node", package="nodejs"), "script.mjs"],
            cwd=folder,
            env={
                **daemon.environment,
                "MAILCHECK_URL": url_of(daemon) + "/api/v1",
                "MAILCHECK_API_KEY": f"{daemon.key}\n",
                **variables,
            },
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


JAVASCRIPT = """
const inbox = new Mailcheck();
const address = await inbox.address("js");
address.cursor = "c0";
const first = await address.wait({ header: ["Subject: confirm", "To: js"], hasAttachment: true });
const quiet = await inbox.newAddress("A label: with *signs*, and longer than there is room");
await quiet.expectNone({ seconds: 1 });
const vain = await address.wait({ timeoutMs: 1000, subject: "reset" }).catch((error) => error);
const unwanted = await address.expectNone({ seconds: 30 }).catch((error) => error);
const [second] = await address.waitMany(1);
const poor = await second.score({ atLeast: 10.5 }).catch((error) => error);
const eml = Buffer.from(await first.eml()).toString();
const pdf = Buffer.from(await first.attachments[0].content()).toString();
const html = await inbox.html(first.id);
await first.delete();
const listed = (await inbox.messages({ tag: "js" })).length;
await address.delete();
console.log(JSON.stringify({
  codes: [first.code, second.code], link: first.link, text: second.text, pdf, html: html.length,
  eml: eml.includes("Subject: Confirm your address"), tag: quiet.tag, none: await quiet.messages(),
  listed, left: (await inbox.messages({ tag: "js" })).length,
  vain: [vain instanceof NoMail, vain.message], poor: [poor instanceof PoorScore, poor.message],
  unwanted: [unwanted instanceof UnexpectedMail, unwanted.mail.code],
}));
"""


@pytest.mark.interop
def test_what_a_test_in_javascript_asks(daemon: Daemon, script: Callable[..., Any]) -> None:
    """JavaScript offers the same as Python: waits, several mails, bytes, scores, deletion."""
    sign_up(daemon, daemon.address("js"), "135790", invoice=b"%PDF 1")
    sign_up(daemon, daemon.address("js"), "246801")
    found = script(JAVASCRIPT)
    assert found["codes"] == ["135790", "246801"]
    assert found["link"] == "https://shop.example.com/confirm?code=135790"
    assert "246801" in found["text"]
    assert (found["pdf"], found["html"], found["eml"]) == ("%PDF 1", 0, True)
    assert re.fullmatch(r"a-label-with-signs-and-l-[a-z2-7]{10}", found["tag"])
    assert (found["none"], found["listed"], found["left"]) == ([], 1, 0)
    assert found["vain"][0]
    assert "Confirm your address" in found["vain"][1]
    assert found["unwanted"] == [True, "246801"]
    assert found["poor"][0]
    assert re.match(r"the mail scores .* of 10, but 10\.5 is required\n  -\d", found["poor"][1])


EVENTS = """
const inbox = new Mailcheck();
const address = await inbox.address("js-events");
address.cursor = "c0";
const subjects = [];
for await (const mail of address.events()) {
  subjects.push(mail.subject, mail.code);
  if (subjects.length === 4) break;
}
const cursor = address.cursor;
const after = [];
for await (const mail of address.events({ timeoutMs: 1000 })) after.push(mail.code);
const refused = [];
const onRefused = (mail) => refused.push(mail.reason);
const options = { after: "c0", tag: "fault.data-554", timeout: 1, onRefused };
for await (const mail of inbox.events(options));
const wrong = await inbox.events({ after: "cffffff" }).next().catch((error) => error);
console.log(JSON.stringify({ subjects, after, refused, wrong: [wrong.status, wrong.message] }));
"""


@pytest.mark.interop
def test_events_in_javascript(daemon: Daemon, script: Callable[..., Any]) -> None:
    """Events include mails in order, later mails, rejected mails, an end, and wrong requests."""
    for code in ("135790", "246801"):
        sign_up(daemon, daemon.address("js-events"), code)
    with pytest.raises(smtplib.SMTPResponseException):
        sign_up(daemon, daemon.address("fault.data-554"), "111111")
    found = script(EVENTS)
    assert found["subjects"] == ["Confirm your address", "135790", "Confirm your address", "246801"]
    assert found["after"] == []
    assert ["fault.data-554" in reason for reason in found["refused"]] == [True]
    assert found["wrong"][0] == 400
    assert "another inbox" in found["wrong"][1]


ELSEWHERE = """
const inbox = new Mailcheck();
const said = () => inbox.cursor().catch((error) => `${error.name}: ${error.message}`);
console.log(JSON.stringify([await said(), await said()]));
"""


@pytest.mark.interop
def test_another_server_in_javascript(script: Callable[..., Any]) -> None:
    """A server other than mailcheck is named, and an invalid Retry-After causes a short pause."""
    answers = [(503, b"busy", "soon"), (200, b"<html>Sign in</html>", ""), (200, b"[]", "")]
    with serving_answers(*answers) as url:
        page, other = script(ELSEWHERE, MAILCHECK_URL=url)
    told = f"MailcheckError: {url}/api/v1 does not respond like mailcheck: "
    assert (page, other) == (f'{told}"<html>Sign in</html>"', f'{told}"[]"')


WRONG = """
const inbox = new Mailcheck({ url: "http://127.0.0.1:1", key: "mck_secret" });
const said = async (call) => {
  try { await call(); } catch (error) { return `${error.name}: ${error.message}`; }
};
console.log(JSON.stringify([
  await said(() => inbox.wait({ sujbect: "x" })),
  await said(() => inbox.wait({ timeout: 30_000 })),
  await said(() => inbox.wait({ timeout: 30, timeoutMs: 30_000 })),
  await said(() => inbox.expectNone({ timeout: 5 })),
  await said(() => new Mailcheck({ apiKey: "mck_secret" })),
  await said(() => new Mailcheck({ key: "mck_secret mck_other" })),
  await said(() => inbox.cursor()),
]));
"""


@pytest.mark.interop
def test_what_can_not_be_meant_throws(script: Callable[..., Any]) -> None:
    """Unknown options, milliseconds for seconds and a broken key are named without the key."""
    answers = script(WRONG)
    for said, words in zip(
        answers,
        [
            'TypeError: unknown option "sujbect"',
            "RangeError: timeout must be at most 600 seconds; got 30000",
            "TypeError: timeout (seconds) and timeoutMs cannot be combined",
            'TypeError: unknown option "timeout"',
            'TypeError: unknown option "apiKey"',
            "MailcheckError: the API key contains a space",
            "MailcheckError: http://127.0.0.1:1/api/v1 cannot be reached",
        ],
        strict=True,
    ):
        assert said.startswith(words), said
    assert "mck_" not in "".join(answers)


@pytest.mark.interop
def test_the_commonjs_client_has_the_same_parts(script: Callable[..., Any]) -> None:
    """``require`` loads all that the module exports, and the client works."""
    found = script("""
import { createRequire } from "node:module";
const commonjs = createRequire(import.meta.url)("./mailcheck.cjs");
const module = await import("./mailcheck.mjs");
const address = await new commonjs.Mailcheck().newAddress("signup");
const vain = await address.wait({ timeout: 1 }).catch((error) => error);
const said = [Object.keys(commonjs).sort(), Object.keys(module).sort()];
console.log(JSON.stringify([...said, vain instanceof commonjs.NoMail]));
""")
    exported, defined, is_no_mail = found
    assert exported == defined
    assert is_no_mail


TYPED = """
import { Mailcheck, type Mail, NoMail, PoorScore, UnexpectedMail } from "./mailcheck.mjs";

export async function typed(): Promise<string> {
  const inbox = new Mailcheck({ url: "http://127.0.0.1:8080", key: "mck_key" });
  const address = await inbox.newAddress("signup");
  const mail: Mail = await address.wait({ timeoutMs: 20_000, subject: "x", hasAttachment: true });
  const [first] = await address.waitMany(2, { header: ["Subject: x"] });
  await address.expectNone({ seconds: 1, text: "x" });
  const bytes: Uint8Array = await mail.attachments[0].content();
  const score: number = (await first.score({ atLeast: 9 })).score;
  // @ts-expect-error: no such option
  await address.wait({ sujbect: "x" });
  // @ts-expect-error: an address has its own tag
  await address.wait({ tag: "other" });
  // @ts-expect-error: seconds, not a time-out
  await inbox.expectNone({ timeout: 5 });
  for (const Failure of [NoMail, PoorScore, UnexpectedMail]) console.log(Failure.name);
  return mail.code + mail.link + mail.text + bytes.length + score;
}
"""


@pytest.mark.interop
def test_the_types_are_those_of_the_library(folder: Path) -> None:
    """TypeScript accepts correct code and rejects mistakes, and each public method has a type."""
    compiler = NODE_MODULES / "typescript" / "bin" / "tsc"
    if not compiler.exists():
        pytest.skip("typescript is not installed: run scripts/install-test-needs")
    (folder / "typed.mts").write_text(TYPED)
    (folder / "typed.cts").write_text(TYPED.replace("mailcheck.mjs", "mailcheck.cjs"))
    options = ("--noEmit", "--strict", "--module", "nodenext", "--target", "es2022")
    node = find_program("node", package="nodejs")
    command = [node, str(compiler), *options, "typed.mts", "typed.cts"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    method = re.compile(r"^  (?:async \*?)?(?!constructor)(\w+)\(.*(?: \{|;)$", re.M)
    served = {name: (folder / name).read_text() for name in ("mailcheck.mjs", "mailcheck.d.mts")}
    defined, declared = (set(method.findall(source)) for source in served.values())
    assert defined - {"sleep", "renew"} == declared
