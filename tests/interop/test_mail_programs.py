"""Mail programs and their libraries read, mark and delete mail over IMAP and POP3.

Each program runs as its user would run it, with an API key as the password. Its configuration is in
a folder of its own.
"""

import asyncio
import hashlib
import imaplib
import json
import os
import poplib
import pty
import re
import select
import shutil
import smtplib
import ssl
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import aioimaplib
import pytest
from imap_tools import AND, MailBox, MailBoxUnencrypted, MailMessageFlags

from mailcheck.connections.certificates import AUTHORITY_FILE
from tests.servers.daemon import Daemon, free_ports

pytestmark = pytest.mark.end_to_end

HOST = "localhost"
USER = "anybody"
PATIENCE = 60.0
NODE_MODULES = Path(__file__).parents[2] / "node_modules"


class Served(Daemon):
    """A daemon with ports for mail programs."""

    imap: int
    imaps: int
    pop3: int
    pop3s: int

    @property
    def authority(self) -> str:
        """The file of the authority that has signed its certificate."""
        return str(self.folder / "var" / AUTHORITY_FILE)

    @property
    def tls(self) -> ssl.SSLContext:
        """The settings of a client that verifies the certificate."""
        return ssl.create_default_context(cafile=self.authority)

    def send(self, subject: str, tag: str = "", body: str = "hello\n.dots\n") -> None:
        """Send a mail to the inbox."""
        self.send_raw(raw_mail(subject, body), tag=tag)

    def send_raw(self, *raws: bytes, tag: str = "") -> None:
        """Send mails to the inbox as they are."""
        address = self.address(tag)
        with smtplib.SMTP("127.0.0.1", self.smtp_port, timeout=PATIENCE) as client:
            for raw in raws:
                client.sendmail("shop@example.com", [address], raw)

    def subjects(self) -> list[str]:
        """Return the subjects in the inbox, oldest first."""
        pages: list[str] = []
        page = 1
        while page:
            found = self.get("/inbox/messages", limit=100, page=page).json
            pages += [one["subject"] for one in found["messages"]]
            page = found.get("nextPage") or 0
        return pages[::-1]

    def clear(self) -> None:
        """Delete all messages."""
        self.request("DELETE", "/inbox/messages")


def raw_mail(subject: str, body: str = "hello\n.dots\n") -> bytes:
    """Return a mail with lines that end with CRLF."""
    text = f"From: shop@example.com\nTo: you@example.com\nSubject: {subject}\n\n{body}"
    return text.replace("\n", "\r\n").encode()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A daemon with IMAP and POP3, whose certificate local clients can verify."""
    folder = tmp_path_factory.mktemp("programs")
    imap, imaps, pop3, pop3s = free_ports(4)
    daemon = Served(
        folder,
        smtp_certificate="self-signed",
        imap_listen=f"127.0.0.1:{imap}",
        imap_tls_listen=f"127.0.0.1:{imaps}",
        pop3_listen=f"127.0.0.1:{pop3}",
        pop3_tls_listen=f"127.0.0.1:{pop3s}",
    )
    daemon.imap, daemon.imaps, daemon.pop3, daemon.pop3s = imap, imaps, pop3, pop3s
    try:
        daemon.start()
        yield daemon
        assert daemon.process.poll() is None, daemon.output()
        assert "Traceback" not in daemon.output(), daemon.output()
    finally:
        daemon.kill()


@pytest.fixture(autouse=True)
def _inbox_is_empty(served: Served) -> None:
    """Each test begins with an empty inbox."""
    served.clear()


def run_program(
    *command: str, folder: Path, status: Sequence[int] = (0,), **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a program with a home folder of its own; it must end with one of the statuses."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed: scripts/install-test-needs interop does it")
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "HOME": str(folder), "LANG": "C.UTF-8", **variables},
        capture_output=True,
        text=True,
        timeout=PATIENCE * 3,
        check=False,
    )
    assert done.returncode in status, (command, done.returncode, done.stdout, done.stderr)
    return done


def secret_file(path: Path, text: str) -> Path:
    """Write a file that other users cannot read, as programs require for passwords."""
    path.write_text(text)
    path.chmod(0o600)
    return path


def maildir(path: Path) -> Path:
    """Create an empty maildir."""
    for name in ("cur", "new", "tmp"):
        (path / name).mkdir(parents=True)
    return path


def deliverer(inside: Path) -> Path:
    """Write a program that stores a mail from its standard input in a maildir."""
    program = inside.with_name("deliver")
    program.write_text(f'#!/bin/sh\ncat > "{inside}/new/$$"\n')
    program.chmod(0o700)
    return program


def mails_in(path: Path) -> list[bytes]:
    """Return the mails of a maildir."""
    return [one.read_bytes() for part in ("new", "cur") for one in sorted((path / part).iterdir())]


ADDED = re.compile(rb"^(?:Return-Path|X-TUID|X-getmail-[a-z-]+): .*\n", re.MULTILINE)
"""Header fields that getmail and mbsync add."""


def digests(raws: Sequence[bytes]) -> list[str]:
    """Return digests of mails, whatever their line endings and added fields are."""
    texts = (ADDED.sub(b"", raw.replace(b"\r\n", b"\n")) for raw in raws)
    return sorted(hashlib.sha256(text).hexdigest() for text in texts)


# POP3.


@pytest.mark.parametrize("mode", ["plain", "stls", "tls"])
def test_poplib(served: Served, mode: str) -> None:
    """Python's poplib lists, retrieves and deletes, in the clear and over both kinds of TLS."""
    served.send("one")
    served.send("two")
    client = (
        poplib.POP3_SSL(HOST, served.pop3s, context=served.tls, timeout=PATIENCE)
        if mode == "tls"
        else poplib.POP3(HOST, served.pop3, timeout=PATIENCE)
    )
    if mode == "stls":
        client.stls(context=served.tls)
    assert "UIDL" in client.capa()
    client.user(USER)
    client.pass_(served.key)
    assert client.stat()[0] == 2
    assert b"\r\n".join(client.retr(1)[1]) + b"\r\n" == raw_mail("one")
    assert client.top(2, 0)[1][-2:] == [b"Subject: two", b""]
    ids = [line.split()[1].decode() for line in client.uidl()[1]]
    assert ids == [one["id"] for one in served.get("/inbox/messages").json["messages"]][::-1]
    client.dele(1)
    client.quit()
    assert served.subjects() == ["two"]


def test_curl_over_pop3(served: Served, tmp_path: Path) -> None:
    """Curl lists and retrieves over POP3 with STLS, and reports a wrong password."""
    served.send("for curl")
    url = f"pop3://{HOST}:{served.pop3}"
    options = ["-s", "--ssl-reqd", "--cacert", served.authority]
    login = ["--user", f"{USER}:{served.key}"]
    listed = run_program("curl", *options, *login, f"{url}/", folder=tmp_path).stdout
    assert listed.split()[0] == "1"
    found = run_program("curl", *options, *login, f"{url}/1", folder=tmp_path).stdout
    assert "Subject: for curl" in found
    assert "\n.dots" in found
    wrong = ["--user", f"{USER}:mck_wrong"]
    run_program("curl", *options, *wrong, f"{url}/", folder=tmp_path, status=(67,))


@pytest.mark.parametrize("protocol", ["pop3", "imap"])
def test_fetchmail(served: Served, tmp_path: Path, protocol: str) -> None:
    """Fetchmail takes all mail out of the inbox and passes it on exactly."""
    raws = [raw_mail(f"mail {n}") for n in range(5)]
    served.send_raw(*raws)
    port = served.pop3 if protocol == "pop3" else served.imap
    inside = maildir(tmp_path / "got")
    deliver = deliverer(inside)
    config = secret_file(
        tmp_path / "fetchmailrc",
        f'poll {HOST} service {port} protocol {protocol} user "{USER}" password "{served.key}"\n'
        f'  sslproto "TLS1.2+" sslcertck sslcertfile "{served.authority}" fetchall no rewrite\n'
        f'  mda "{deliver}"\n',
    )
    run_program("fetchmail", "-f", str(config), "--nodetach", "--nosyslog", folder=tmp_path)
    assert served.subjects() == []
    found = mails_in(inside)
    assert len(found) == 5
    assert all(b".dots" in one for one in found)
    run_program("fetchmail", "-f", str(config), folder=tmp_path, status=(1,))  # no new mail


@pytest.mark.parametrize("protocol", ["POP3", "IMAP"])
def test_getmail(served: Served, tmp_path: Path, protocol: str) -> None:
    """Getmail fetches each mail once, and leaves it in the inbox if told so."""
    raws = [raw_mail(f"mail {n}") for n in range(5)]
    served.send_raw(*raws)
    inside = maildir(tmp_path / "got")
    deliver = deliverer(inside)
    port = served.pop3s if protocol == "POP3" else served.imaps
    folder = tmp_path / ".getmail"
    folder.mkdir()
    secret_file(
        folder / "getmailrc",
        f"[retriever]\ntype = Simple{protocol}SSLRetriever\nserver = {HOST}\nport = {port}\n"
        f"username = {USER}\npassword = {served.key}\nca_certs = {served.authority}\n"
        # Its own maildir is not for root.
        f"[destination]\ntype = MDA_external\npath = {deliver}\nallow_root_commands = true\n"
        "[options]\nread_all = false\ndelete = false\ndelivered_to = false\nreceived = false\n",
    )
    run_program("getmail", f"--getmaildir={folder}", folder=tmp_path)
    run_program("getmail", f"--getmaildir={folder}", folder=tmp_path)
    assert digests(mails_in(inside)) == digests(raws)
    assert len(served.subjects()) == 5


def test_mpop(served: Served, tmp_path: Path) -> None:
    """Mpop pipelines its commands, stores all mail exactly, and deletes it."""
    raws = [raw_mail(f"mail {n}", "line\n" * n) for n in range(100)]
    served.send_raw(*raws)
    inside = maildir(tmp_path / "got")
    config = secret_file(
        tmp_path / "mpoprc",
        f"account a\nhost {HOST}\nport {served.pop3}\ntls on\ntls_starttls on\n"
        f"tls_trust_file {served.authority}\nuser {USER}\npassword {served.key}\nauth plain\n"
        f"pipelining on\nkeep off\nreceived_header off\ndelivery maildir {inside}\n",
    )
    run_program("mpop", "-C", str(config), "a", folder=tmp_path)
    assert digests(mails_in(inside)) == digests(raws)
    assert served.subjects() == []


# IMAP.


def logged_in(served: Served) -> imaplib.IMAP4:
    """Return a client of the standard library that has logged in."""
    client = imaplib.IMAP4(HOST, served.imap, timeout=PATIENCE)
    client.login(USER, served.key)
    return client


def good(answer: tuple[str, Any]) -> Any:
    """Return the data of an answer, which must be OK."""
    assert answer[0] == "OK", answer
    return answer[1]


@pytest.mark.parametrize("mode", ["plain", "starttls", "tls"])
def test_imaplib(served: Served, mode: str) -> None:
    """Python's imaplib searches, fetches exact bytes, marks, appends and deletes."""
    served.send("one", "shop")
    served.send("two")
    client = (
        imaplib.IMAP4_SSL(HOST, served.imaps, ssl_context=served.tls, timeout=PATIENCE)
        if mode == "tls"
        else imaplib.IMAP4(HOST, served.imap, timeout=PATIENCE)
    )
    if mode == "starttls":
        client.starttls(served.tls)
    client.authenticate("PLAIN", lambda _: f"\0{USER}\0{served.key}".encode())
    assert good(client.select()) == [b"2"]
    assert good(client.search(None, "SUBJECT", '"two"', "UNSEEN")) == [b"2"]
    assert good(client.search("UTF-8", "BODY", '"hello"')) == [b"1 2"]
    (item, _) = good(client.fetch("1", "(FLAGS BODY[])"))
    assert item[1] == raw_mail("one")
    assert served.get("/inbox/messages").json["messages"][1]["isRead"]
    good(client.store("2", "+FLAGS", r"(\Flagged $Label1)"))
    assert good(client.search(None, "KEYWORD", "$Label1")) == [b"2"]
    good(client.append("Tags/made", r"(\Seen)", None, raw_mail("appended")))
    assert good(client.noop())
    assert served.subjects() == ["one", "two", "appended"]
    assert b"Tags/made" in b" ".join(good(client.list()))
    good(client.store("1", "+FLAGS", r"(\Deleted)"))
    good(client.expunge())
    assert served.subjects() == ["two", "appended"]
    good(client.select("Tags/made", readonly=True))
    assert good(client.search(None, "ALL")) == [b"1"]
    client.logout()


def test_imap_tools(served: Served) -> None:
    """imap-tools searches with its criteria, marks, moves to the trash, and reads attachments."""
    served.send("one")
    served.send("two")
    served.send_raw(
        b"From: a@b.example\r\nTo: c@d.example\r\nSubject: =?utf-8?q?caf=C3=A9?=\r\n"
        b"MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
        b"--b\r\nContent-Type: text/plain\r\n\r\nsee the file\r\n"
        b"--b\r\nContent-Type: text/csv; name=a.csv\r\n"
        b"Content-Disposition: attachment; filename=a.csv\r\n\r\n1,2\r\n--b--\r\n"
    )
    with MailBox(HOST, served.imaps, ssl_context=served.tls).login(USER, served.key) as box:
        assert [one.subject for one in box.fetch()] == ["one", "two", "caf\u00e9"]
        assert not list(box.fetch(AND(seen=False)))
        (mail,) = box.fetch(AND(subject="caf\u00e9"), charset="utf-8")
        assert [(one.filename, one.payload) for one in mail.attachments] == [("a.csv", b"1,2")]
        assert len(box.numbers(AND(from_="shop@example.com", text="hello"))) == 2
        uids = box.uids(AND(subject="one"))
        box.flag(uids, [MailMessageFlags.FLAGGED], True)
        assert box.uids(AND(flagged=True)) == uids
        assert box.folder.status("INBOX")["MESSAGES"] == 3
        assert {"INBOX", "Sandbox", "Trash"} <= {one.name for one in box.folder.list()}
        box.move(uids, "Trash")
        box.delete(box.uids(AND(subject="two")))
        assert served.subjects() == ["caf\u00e9"]
    with MailBoxUnencrypted(HOST, served.imap).login(USER, served.key) as box:
        with box.idle as idle:
            assert idle.poll(timeout=0.1) == []
            served.send("news")
            assert any(b"EXISTS" in one for one in idle.poll(timeout=PATIENCE))
        assert [one.subject for one in box.fetch()] == ["caf\u00e9", "news"]


def test_aioimaplib(served: Served) -> None:
    """Aioimaplib is told of new mail while it idles."""

    async def wait() -> list[bytes]:
        client = aioimaplib.IMAP4(host=HOST, port=served.imap, timeout=PATIENCE)
        await client.wait_hello_from_server()
        await client.login(USER, served.key)
        await client.select()
        idle = await client.idle_start(timeout=PATIENCE)
        await asyncio.to_thread(served.send, "news")
        pushed: list[bytes] = await client.wait_server_push()
        client.idle_done()
        await asyncio.wait_for(idle, PATIENCE)
        _, lines = await client.uid("fetch", "1:*", "(FLAGS BODY.PEEK[HEADER.FIELDS (SUBJECT)])")
        await client.logout()
        client.protocol.transport.close()  # the end of the loop may come before that of the server
        return [*pushed, *lines]

    with ThreadPoolExecutor(1) as thread:  # Playwright may run its event loop in this one
        told = thread.submit(asyncio.run, wait()).result()
    assert any(b"EXISTS" in one for one in told), told
    assert any(b"Subject: news" in one for one in told), told


def test_curl_over_imap(served: Served, tmp_path: Path) -> None:
    """Curl lists, searches, fetches and appends over IMAP with STARTTLS."""
    served.send("for curl", "shop")
    url = f"imap://{HOST}:{served.imap}"
    login = ["-s", "--ssl-reqd", "--cacert", served.authority, "--user", f"{USER}:{served.key}"]

    def ask(*arguments: str) -> str:
        return run_program("curl", *login, *arguments, folder=tmp_path).stdout

    assert "Tags/shop" in ask(f"{url}/")
    assert ask(f"{url}/INBOX", "-X", "SEARCH SUBJECT curl").split() == ["*", "SEARCH", "1"]
    assert ask(f"{url}/INBOX;MAILINDEX=1").encode().replace(b"\r\n", b"\n") == raw_mail(
        "for curl"
    ).replace(b"\r\n", b"\n")
    (tmp_path / "mail").write_bytes(raw_mail("from curl"))
    ask("-T", "mail", f"{url}/INBOX")
    assert served.subjects() == ["for curl", "from curl"]


MBSYNC = """\
IMAPAccount a
Host {host}
Port {port}
User {user}
Pass {key}
SSLType IMAPS
CertificateFile {authority}

IMAPStore far
Account a

MaildirStore near
Path {folder}/mail/
Inbox {folder}/mail/INBOX
SubFolders Verbatim

Channel inbox
Far :far:
Near :near:
Patterns INBOX
Create Near
Expunge Both
Sync All
SyncState *
"""


def test_mbsync(served: Served, tmp_path: Path) -> None:
    """Mbsync keeps 500 mails the same on both sides: flags, deletions and new mail of each side."""
    raws = [raw_mail(f"mail {n:03}", f"{n}\n") for n in range(500)]
    served.send_raw(*raws)
    (tmp_path / "mail").mkdir()
    config = secret_file(
        tmp_path / "mbsyncrc",
        MBSYNC.format(
            host=HOST,
            port=served.imaps,
            user=USER,
            key=served.key,
            authority=served.authority,
            folder=tmp_path,
        ),
    )
    inside = tmp_path / "mail" / "INBOX"

    def sync() -> None:
        run_program("mbsync", "-c", str(config), "-a", folder=tmp_path)

    sync()
    assert digests(mails_in(inside)) == digests(raws)
    files = sorted(
        (one for part in ("new", "cur") for one in (inside / part).iterdir()),
        key=lambda one: one.read_bytes(),
    )
    files[0].unlink()  # deleted on this side
    flagged = inside / "cur" / (files[1].name.partition(":")[0] + ":2,FS")
    files[1].rename(flagged)
    (inside / "new" / "written").write_bytes(raw_mail("written here"))
    client = logged_in(served)
    client.select()
    client.store("500", "+FLAGS", r"(\Deleted)")  # deleted on the other side
    client.store("499", "+FLAGS", r"(\Answered)")
    client.expunge()
    served.send("new there")
    sync()
    sync()
    expected = {f"mail {n:03}" for n in range(1, 499)} | {"written here", "new there"}
    assert set(served.subjects()) == expected
    assert len(mails_in(inside)) == 500
    client.select()
    assert good(client.search(None, "FLAGGED", "SEEN")) == [b"1"]
    (answered,) = [
        one for one in (inside / "cur").iterdir() if "R" in one.name.rpartition(":2,")[2]
    ]
    assert b"mail 498" in answered.read_bytes()
    client.logout()


def test_neomutt(served: Served, tmp_path: Path) -> None:
    """Neomutt, in a terminal, shows the list of the inbox and the text of a mail."""
    if shutil.which("neomutt") is None:
        pytest.skip("neomutt is not installed: run scripts/install-test-needs interop as root")
    served.send("first of all", body="the text of the mail\n")
    config = secret_file(
        tmp_path / "neomuttrc",
        f'set folder="imap://{HOST}:{served.imap}/" spoolfile="+INBOX" imap_user="{USER}"\n'
        f'set imap_pass="{served.key}" ssl_starttls=no ssl_force_tls=no\n'
        f'set header_cache="" wait_key=no confirmappend=no quit=yes delete=yes\n',
    )
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        variables = {**os.environ, "HOME": str(tmp_path), "TERM": "xterm", "LANG": "C.UTF-8"}
        os.execvpe("neomutt", ["neomutt", "-F", str(config)], variables)
    screen = Screen(terminal)
    screen.wait_for("first of all")
    screen.press("\r")
    screen.wait_for("the text of the mail")
    screen.press("q")
    screen.press("d")
    screen.press("q")
    _, status = os.waitpid(pid, 0)
    assert status == 0, screen.text
    assert served.subjects() == []


class Screen:
    """The output of a program in a terminal."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self.text = ""

    def press(self, keys: str) -> None:
        """Send keys to the program."""
        os.write(self._terminal, keys.encode())

    def wait_for(self, text: str) -> None:
        """Wait until a text has been shown."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.text:
            assert time.monotonic() < deadline, self.text
            if select.select([self._terminal], [], [], 0.1)[0]:
                shown = os.read(self._terminal, 65_536).decode("utf-8", "replace")
                self.text += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)


IMAPFLOW = """
import { ImapFlow } from "imapflow";
const client = new ImapFlow({ host: process.env.MAIL_HOST, port: Number(process.env.MAIL_PORT),
  secure: true, auth: { user: "anybody", pass: process.env.MAIL_PASSWORD }, logger: false });
await client.connect();
const boxes = (await client.list()).map(one => one.path);
const lock = await client.getMailboxLock("INBOX");
const found = [];
for await (const one of client.fetch("1:*", { envelope: true, source: true, flags: true }))
  found.push([one.envelope.subject, one.source.toString(), one.flags.size]);
const matching = await client.search({ subject: "two" }, { uid: true });
await client.messageFlagsAdd(matching, ["\\\\Flagged"], { uid: true });
const flagged = await client.search({ flagged: true }, { uid: true });
const told = new Promise(resolve => client.on("exists", event => resolve(event.count)));
await client.append("INBOX", "Subject: appended\\r\\n\\r\\nhi\\r\\n");
const count = await told;
await client.messageDelete("1");
lock.release();
await client.logout();
console.log(JSON.stringify({ boxes, found, matching, flagged, count }));
"""


def test_imapflow(served: Served, tmp_path: Path) -> None:
    """Node's ImapFlow lists, fetches, searches, marks, appends and deletes over TLS."""
    if not (NODE_MODULES / "imapflow").exists():
        pytest.skip("imapflow is not installed: run scripts/install-test-needs interop")
    served.send("one")
    served.send("two")
    (tmp_path / "node_modules").symlink_to(NODE_MODULES)
    (tmp_path / "read.mjs").write_text(IMAPFLOW)
    done = run_program(
        "node",
        "read.mjs",
        folder=tmp_path,
        NODE_EXTRA_CA_CERTS=served.authority,
        MAIL_HOST=HOST,
        MAIL_PORT=str(served.imaps),
        MAIL_PASSWORD=served.key,
    )
    found = json.loads(done.stdout)
    assert "INBOX" in found["boxes"]
    assert found["found"][0] == ["one", raw_mail("one").decode(), 0]
    assert len(found["matching"]) == 1
    assert found["flagged"] == found["matching"]
    assert found["count"] == 3
    assert served.subjects() == ["two", "appended"]
