"""``mailcheck sendmail``: takes the place of ``/usr/sbin/sendmail`` for programs that run it.

The mail is submitted to a daemon with an API key, so it is stored in the inbox of the key for any
recipient. The options are those of sendmail that PHP, cron, Rails, git and mail programs use. The
exit statuses are those of sysexits.h, which these programs know.
"""

import argparse
import getpass
import os
import re
import smtplib
import socket
import ssl
import sys
from collections.abc import Iterator, Sequence
from email.utils import formataddr, formatdate, getaddresses, make_msgid
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from msgspec import Struct

from mailcheck.cli.access.daemon_access import add_daemon_options, read_key
from mailcheck.cli.commands import Console, why_not_sent, write_reply
from mailcheck.cli.parser import Parser
from mailcheck.config.options import Config
from mailcheck.config.reading import ConfigError
from mailcheck.core.network_addresses import parse_listen_address

TIMEOUT = 60.0
"""Seconds to wait for the daemon."""

MAIL_NAME = Path("/etc/mailname")
"""File with the domain of addresses without one (Debian policy 11.6)."""

RECIPIENT_FIELDS = (b"to", b"cc", b"bcc")
RESENT_FIELDS = (b"resent-to", b"resent-cc", b"resent-bcc")
REMOVED_FIELDS = (b"bcc", b"resent-bcc")

IGNORED_SWITCHES = "GImnUvx"
IGNORED_VALUES = "ABCeLNORVX"
"""Options of sendmail without a meaning here, without and with a value."""

EXTENSIONS = ("SIZE", "8BITMIME", "SMTPUTF8", "PIPELINING", "ENHANCEDSTATUSCODES", "HELP")
"""What ``-bs`` offers. The session is authenticated and needs no TLS of its own."""

_LINE_END = re.compile(rb"\r?\n")
_FIELD = re.compile(rb"([!-9;-~]+)[ \t]*:(.*)", re.DOTALL)
_UNFOLD = re.compile(rb"\r\n(?=[ \t])")
_UNIX_FROM = re.compile(rb"\A>?From [^\r\n]*\r\n")


def add_sendmail(parser: Parser) -> None:
    """Add the options of ``mailcheck sendmail``."""
    parser.usage_status, parser.config_status = os.EX_USAGE, os.EX_CONFIG
    parser.description = (
        "Takes the place of /usr/sbin/sendmail: reads a mail from standard input, and submits it"
        " to the daemon with an API key. The mail is stored in the inbox of the key."
    )
    parser.epilog = (
        "Exit status, as in sysexits.h: 0 accepted, 64 wrong usage, 65 no recipient in the mail, 69"
        " rejected, 75 the daemon cannot be reached: try again, 77 wrong key, 78 no key or wrong"
        " configuration."
    )
    parser.set_defaults(command=sendmail, has_progress=False)
    add_daemon_options(parser)
    parser.add_argument(
        "--server", metavar="HOST:PORT", help="the submission port (default: the daemon's, 2587)"
    )
    parser.add_argument("recipients", nargs="*", metavar="RECIPIENT", help="a recipient")
    parser.add_argument(
        "-t", dest="from_fields", action="store_true", help="send to To, Cc and Bcc of the mail too"
    )
    parser.add_argument(
        "-i", dest="has_dots", action="store_true", help="a line with a dot does not end the mail"
    )
    parser.add_argument(
        "-f", "-r", dest="sender", metavar="SENDER", help="sender of the envelope; <>: none"
    )
    parser.add_argument(
        "-F", dest="name", default="", help="name of the sender, if From is missing"
    )
    parser.add_argument(
        "-b", dest="mode", choices=("m", "s"), default="m", help="s: speak SMTP on standard input"
    )
    parser.add_argument(
        "-o", dest="set", action="append", default=[], metavar="OPTION", help="i: the same as -i"
    )
    for letter in IGNORED_SWITCHES:
        parser.add_argument(f"-{letter}", action="store_true", help=argparse.SUPPRESS)
    for letter in IGNORED_VALUES:
        parser.add_argument(f"-{letter}", dest=f"ignored_{letter}", help=argparse.SUPPRESS)


class _Server(Struct, frozen=True):
    """The submission port. With TLS, its certificate is verified."""

    host: str
    port: int
    has_tls: bool


def sendmail(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck sendmail``: return a status of sysexits.h.

    :raises ConfigError: no key or no server is known.
    """
    server = _find_server(options, console.config)
    key = read_key(options, console)
    try:
        if options.mode == "s":
            return _speak(server, key, sys.stdin.buffer, console)
        return _send(options, server, key, sys.stdin.buffer.read(), console)
    except smtplib.SMTPAuthenticationError as error:
        console.print_note(f"sendmail: {why_not_sent(error)}")
        return os.EX_TEMPFAIL if _is_temporary(error.smtp_code) else os.EX_NOPERM
    except smtplib.SMTPRecipientsRefused as error:
        for recipient, (code, text) in error.recipients.items():
            console.print_note(f"sendmail: {recipient}: {write_reply(code, text)}")
        codes = [code for code, _ in error.recipients.values()]
        return os.EX_TEMPFAIL if any(map(_is_temporary, codes)) else os.EX_UNAVAILABLE
    except smtplib.SMTPResponseException as error:
        console.print_note(f"sendmail: {why_not_sent(error)}")
        return os.EX_TEMPFAIL if _is_temporary(error.smtp_code) else os.EX_UNAVAILABLE
    except smtplib.SMTPNotSupportedError as error:
        console.print_note(
            f"sendmail: {server.host}:{server.port} is not a submission port: {error}"
        )
        return os.EX_CONFIG
    except OSError as error:
        why = why_not_sent(error)
        console.print_note(f"sendmail: {server.host}:{server.port} cannot be reached: {why}")
        console.print_note("is the daemon running? name another port with --server HOST:PORT")
        return os.EX_TEMPFAIL


def _find_server(options: argparse.Namespace, config: Config) -> _Server:
    """Return the submission port that is named, or that of the daemon.

    :raises ConfigError: neither is known.
    """
    url = urlsplit(options.url or os.environ.get("MAILCHECK_URL") or "")
    text = options.server or next(iter(config.smtp.submission_listen), "")
    try:
        listens = parse_listen_address(text)
    except ValueError:
        listens = None
    if listens is None or listens.host is None or not listens.port:
        raise ConfigError(f"name the submission port with --server host:port; got {text!r}")
    host = listens.host if options.server else url.hostname or listens.local_host or ""
    return _Server(host, listens.port, has_tls=url.scheme == "https")


def _log_in(server: _Server, key: str) -> smtplib.SMTP:
    """Connect to the submission port, and return the authenticated session."""
    smtp = smtplib.SMTP(timeout=TIMEOUT, local_hostname=socket.gethostname() or "localhost")
    try:
        code, text = smtp.connect(server.host, server.port)
        if code != 220:
            raise smtplib.SMTPConnectError(code, text)
        if server.has_tls:
            smtp.starttls(context=ssl.create_default_context())
        smtp.login("sendmail", key)
    except BaseException:
        smtp.close()
        raise
    return smtp


def _send(
    options: argparse.Namespace, server: _Server, key: str, data: bytes, console: Console
) -> int:
    """Submit the mail to the recipients of the command line and of the mail."""
    if not (options.has_dots or "i" in options.set):
        data = _until_dot(data)
    domain = own_domain()
    fields, body = _split(data)
    texts = list(options.recipients)
    if options.from_fields:
        texts += _recipient_texts(fields)
    recipients = dict.fromkeys(_qualify(address, domain) for address in _addresses(texts))
    if not recipients:
        if options.from_fields:
            console.print_note("sendmail: the mail has no recipient in To, Cc or Bcc")
            return os.EX_DATAERR
        console.print_note("sendmail: name recipients, or use -t to read them from the mail")
        return os.EX_USAGE
    sender = _sender(options.sender, domain)
    for address in (sender, *recipients):
        if not address.isprintable():
            console.print_note(f"sendmail: {address!r} is not an address")
            return os.EX_DATAERR
    message = b"\r\n".join([*complete_fields(fields, sender, options.name, domain), b"", body])
    with _log_in(server, key) as smtp:
        extensions = _mail_options(message, sender, *recipients)
        refused = smtp.sendmail(sender, list(recipients), message, extensions)
    if refused:
        raise smtplib.SMTPRecipientsRefused(refused)
    return os.EX_OK


def _until_dot(data: bytes) -> bytes:
    """Return the mail until a line with a dot alone."""
    lines = data.splitlines(keepends=True)
    ends = (number for number, line in enumerate(lines) if line.rstrip(b"\r\n") == b".")
    return b"".join(lines[: next(ends, len(lines))])


def _split(data: bytes) -> tuple[list[bytes], bytes]:
    """Return the header fields, folded as they are, and the body. Line ends are CRLF."""
    text = _UNIX_FROM.sub(b"", _LINE_END.sub(b"\r\n", data))
    fields: list[bytes] = []
    begin = 0
    while begin < len(text) and not text.startswith(b"\r\n", begin):
        end = text.find(b"\r\n", begin)
        line = text[begin:] if end < 0 else text[begin:end]
        if line[:1] in (b" ", b"\t") and fields:
            fields[-1] += b"\r\n" + line
        elif _FIELD.fullmatch(line):
            fields.append(line)
        else:
            return fields, text[begin:]  # the body of a mail without an empty line
        begin = len(text) if end < 0 else end + 2
    return fields, text[begin + 2 :]


def _name(field: bytes) -> bytes:
    found = _FIELD.fullmatch(field)
    return found[1].lower() if found else b""


def _recipient_texts(fields: Sequence[bytes]) -> Iterator[str]:
    """Yield the recipients in the header. A resent mail goes to its new recipients only."""
    names = {_name(field) for field in fields}
    wanted = RECIPIENT_FIELDS if names.isdisjoint(RESENT_FIELDS) else RESENT_FIELDS
    for field in fields:
        if _name(field) in wanted:
            value = _UNFOLD.sub(b"", field.partition(b":")[2])
            yield value.decode("utf-8", "surrogateescape")


def _addresses(texts: Sequence[str]) -> Iterator[str]:
    return (address for _, address in getaddresses(texts) if address)


def _qualify(address: str, domain: str) -> str:
    """Return the address with a domain. cron writes to `root`."""
    return address if "@" in address else f"{address}@{domain}"


def own_domain() -> str:
    """Return the domain of addresses of this machine."""
    try:
        name = MAIL_NAME.read_text("utf-8").strip()
    except (OSError, ValueError):
        name = ""
    return name or socket.gethostname() or "localhost"


def _sender(given: str | None, domain: str) -> str:
    """Return the envelope sender: the given one, which may be empty, or the user."""
    if given is not None:
        address = next(_addresses([given]), "")
        return _qualify(address, domain) if address else ""
    return user_address(domain)


def user_address(domain: str) -> str:
    """Return the address of the user of this process in a domain."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container runs as a user without a name
        user = str(os.getuid())
    return f"{user}@{domain}"


def complete_fields(fields: Sequence[bytes], sender: str, name: str, domain: str) -> list[bytes]:
    """Return the fields without Bcc. Missing ones are added as a mail server does."""
    kept = [field for field in fields if _name(field) not in REMOVED_FIELDS]
    names = {_name(field) for field in kept}
    author = formataddr((name, sender or f"MAILER-DAEMON@{domain}"))
    for missing, value in (
        ("From", author),
        ("Date", formatdate(localtime=True)),
        ("Message-ID", make_msgid(domain=domain)),
    ):
        if missing.lower().encode() not in names:
            kept.append(f"{missing}: {value}".encode("utf-8", "surrogateescape"))
    return kept


def _mail_options(message: bytes, *addresses: str) -> list[str]:
    """Return the parameters of MAIL that characters outside ASCII need. The daemon has both."""
    options = [] if message.isascii() else ["BODY=8BITMIME"]
    return options if all(map(str.isascii, addresses)) else [*options, "SMTPUTF8"]


def _speak(server: _Server, key: str, commands: BinaryIO, console: Console) -> int:
    """Pass SMTP commands to the daemon, and its replies back, until QUIT or the end of input."""

    def reply(code: int, text: bytes) -> None:
        lines = text.split(b"\n")
        signs = [b"-"] * (len(lines) - 1) + [b" "]
        parts = zip(signs, lines, strict=True)
        console.write_bytes(b"".join(b"%d%b%b\r\n" % (code, *part) for part in parts))

    with _log_in(server, key) as smtp:
        reply(220, f"{socket.gethostname()} ESMTP mailcheck".encode())
        for line in commands:
            command = line.rstrip(b"\r\n")
            verb = command[:4].upper()
            if verb in (b"AUTH", b"STAR", b"BDAT"):
                reply(502, b"5.5.1 Not offered here")
                continue
            code, text = smtp.docmd(command.decode("utf-8", "surrogateescape"))
            if verb == b"EHLO":
                first, *rest = text.split(b"\n")
                offered = [one for one in rest if one.split(b" ")[0].decode() in EXTENSIONS]
                text = b"\n".join([first, *offered])
            reply(code, text)
            if verb == b"DATA" and code == 354:
                if not _pass_data(smtp, commands):
                    smtp.close()  # so that the daemon does not store half a mail
                    return os.EX_IOERR
                reply(*smtp.getreply())
            if verb == b"QUIT":
                break
    return os.EX_OK


def _pass_data(smtp: smtplib.SMTP, commands: BinaryIO) -> bool:
    """Send the lines of a mail, whose dots are doubled already. Return whether it has an end."""
    for line in commands:
        content = line.rstrip(b"\r\n")
        smtp.send(content + b"\r\n")
        if content == b".":
            return True
    return False


def _is_temporary(code: int) -> bool:
    return 400 <= code < 500
