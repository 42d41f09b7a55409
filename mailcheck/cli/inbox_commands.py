"""``mailcheck new``, ``wait``, ``inbox`` and ``send-sample``, which use a daemon."""

import argparse
import json
import re
import smtplib
import time
from collections.abc import Sequence
from datetime import datetime
from email.message import EmailMessage
from typing import cast

from mailcheck.cli.access.daemon_access import command_line, report_problem, set_daemon_command
from mailcheck.cli.commands import Console, why_not_sent
from mailcheck.cli.exit_statuses import EXIT_FINE, EXIT_PROBLEM, EXIT_UNDETERMINED, EXIT_USAGE
from mailcheck.cli.parser import whole_number
from mailcheck.clients.mailcheck_client import (
    LARGEST_PAGE,
    Filters,
    Mail,
    Mailcheck,
    MailcheckError,
    Mails,
    NoMail,
    UnexpectedMail,
)
from mailcheck.config.reading import ConfigError
from mailcheck.core.errors import cause_of, nearest_word
from mailcheck.core.network_addresses import parse_listen_address

ACTIONS = ("list", "show", "delete")
"""What ``mailcheck inbox`` does with mails."""

LENGTH_OF_ID = 36
_BEGINNING_OF_ID = re.compile(r"[0-9a-fA-F-]{4,36}")

SAMPLE_TAG = "sample"
SAMPLE_CODE = "482913"
SAMPLE_TIMEOUT = 10.0

LISTED = 20
"""Default number of listed mails."""

LAST_PAGE = 1_000_000
"""Maximum number of a page."""

LONGEST_WAIT = 86_400
"""Maximum timeout in seconds."""

DEFAULT_WAIT, DEFAULT_SILENCE = 30.0, 5.0
"""Default timeouts in seconds, to wait for mail and for none."""


def add_new(new: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck new``."""
    set_daemon_command(new, take_address)
    new.add_argument("tag", nargs="?", help="the tag (default: a new unique one)")
    new.add_argument("--json", action="store_true", help="print JSON")


def add_wait(wait: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck wait``."""
    wait.description = (
        "Waits for a mail and prints it. Without --after, the newest mail of the last 10 minutes"
        " counts too; standard error shows its age."
    )
    wait.epilog = (
        "Exit status: 0 fine, 1 no mail arrived (with --none: one did), 2 usage error, 3 no daemon,"
        " a wrong key or an exceeded limit, 130 interrupted."
    )
    set_daemon_command(wait, wait_for_mail)
    wait.add_argument("--tag", help="only mail to this tag; empty: only untagged mail")
    wait.add_argument("--to", help="only mail to this address")
    wait.add_argument(
        "--from", dest="from_", metavar="TEXT", help="only mail whose author contains this"
    )
    wait.add_argument("--subject", help="only mail whose subject contains this")
    begin = wait.add_mutually_exclusive_group()
    begin.add_argument("--after", metavar="CURSOR", help="only mail after this cursor")
    begin.add_argument("--new", action="store_true", help="only mail that arrives from now on")
    wanted = wait.add_mutually_exclusive_group()
    wanted.add_argument(
        "--count",
        type=whole_number(1, LARGEST_PAGE),
        metavar="N",
        help="wait for N mails, 1 to 100",
    )
    wanted.add_argument("--none", action="store_true", help="expect that no mail arrives")
    wait.add_argument(
        "--timeout",
        type=seconds,
        metavar="SECONDS",
        help=f"timeout (default: {DEFAULT_WAIT:g}; with --none: {DEFAULT_SILENCE:g})",
    )
    _add_shape(wait)


def add_inbox(inbox: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck inbox``."""
    inbox.description = (
        "`inbox` or `inbox list` lists mails, newest first. `inbox show ID` shows mails. `inbox"
        " delete` deletes mails by ids, by --tag, or --all. The beginning of an id is enough."
    )
    set_daemon_command(inbox, show_inbox)
    inbox.add_argument(
        "ids", nargs="*", metavar="[list|show|delete] ID", help="show (or delete) this mail"
    )
    inbox.add_argument("--tag", help="only mail to this tag")
    inbox.add_argument(
        "-q",
        "--query",
        metavar="QUERY",
        help="list only matching mail, such as 'from:shop \"your order\" newer:2h'; the page"
        ' "Search mail" of the documentation explains all terms',
    )
    inbox.add_argument(
        "--limit",
        type=whole_number(1, LARGEST_PAGE),
        metavar="N",
        help=f"maximum number of mails, 1 to {LARGEST_PAGE} ({LISTED})",
    )
    inbox.add_argument(
        "--page", type=whole_number(1, LAST_PAGE), metavar="N", help="page of the list, from 1"
    )
    inbox.add_argument(
        "--all", action="store_true", help="list (or delete) all mails of the inbox or the tag"
    )
    _add_shape(inbox, code="print only the one-time code (default: of the newest mail)")


def add_send_sample(sample: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck send-sample``."""
    set_daemon_command(sample, send_sample)
    sample.add_argument("recipient", nargs="?", help="an inbox address (default: your own)")
    sample.add_argument("--server", metavar="HOST:PORT", help="the mail server of the daemon")


def seconds(text: str) -> float:
    """Parse a timeout of the command line."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= LONGEST_WAIT:
        is_in_milliseconds = LONGEST_WAIT < value <= 1_000 * LONGEST_WAIT
        hint = f"; {value:g} ms are {value / 1_000:g}" if is_in_milliseconds else ""
        raise argparse.ArgumentTypeError(
            f"the timeout must be a number of seconds from 1 to {LONGEST_WAIT:,}; got {text}{hint}"
        )
    return value


def take_address(inbox: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck new [TAG]``: print the address and its cursor on one line."""
    asked = {"unique": "true"} if options.tag is None else {"tag": options.tag}
    made = inbox.request("GET", "/inbox/address", asked)
    if console.print_answer(made):
        return EXIT_FINE
    console.print_line(f"{made['address']}  {made['cursor']}")
    wait = command_line(options, "wait", "--tag", made["tag"], "--after", made["cursor"])
    console.print_note(f"next: {wait}")
    return EXIT_FINE


def wait_for_mail(inbox: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck wait``: exit with 1 if no mail arrives, and print near misses to stderr."""
    filters = _filters(options)
    console.progress.text = "waiting for mail"
    try:
        if options.none:
            seconds = DEFAULT_SILENCE if options.timeout is None else options.timeout
            inbox.expect_none(seconds, after=options.after, **filters)
            return EXIT_FINE
        mails = _wait(inbox, filters, options, console)
    except NoMail as error:
        if options.json or options.jsonl:
            console.print_text(json.dumps(error.body))
        return report_problem(error, console)
    except UnexpectedMail as error:
        if error.mail is not None:
            console.print_note(_one_line(error.mail))
        return report_problem(error, console)
    if options.count is None:
        return _print_whole(mails, options, console)
    if options.json:
        console.print_json({"messages": mails, "cursor": mails[-1]["cursor"]})
        return EXIT_FINE
    return _print_mails(mails, options, console)


def show_inbox(inbox: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck inbox``, ``inbox list``, ``inbox [show] ID ...`` and ``inbox delete``."""
    action, ids = _split_action(options.ids)
    if action != "delete" and ids and options.all:
        raise ConfigError("--all lists all mails; remove it, or the ids")
    if action == "delete":
        return _delete(inbox, ids, options, console)
    if ids:
        mails = [inbox.message(message_id) for message_id in _find_ids(inbox, ids)]
        return _print_whole(mails, options, console)
    return _show_list(inbox, options, console)


def _show_list(inbox: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    if options.all and (options.limit is not None or options.page is not None):
        raise ConfigError("--all lists all pages; remove --limit and --page")
    is_of_newest = options.code or options.link or options.raw
    mails = _list(inbox, options, limit=1 if is_of_newest else options.limit)
    if mails.not_searched:
        console.print_note(
            f"{mails.not_searched} new mails have not been searched yet; run the command again"
        )
    if options.json:
        console.print_json({**mails.body, "messages": mails, "nextPage": mails.next_page})
        return EXIT_FINE
    if not mails:
        is_whole = not options.query and not _filters(options)
        address = inbox.address().email if is_whole else ""
        text = f"the inbox is empty: send mail to {address}" if address else "no mail matches"
        console.print_note(f"mailcheck: {text}")
        return EXIT_PROBLEM if is_of_newest else EXIT_FINE
    if mails.next_page is not None and not is_of_newest:
        console.print_note(
            f"{len(mails)} of {mails.total:,} mails; --all lists all of them, and"
            f" --page {mails.next_page} the next ones"
        )
    return _print_mails(mails, options, console)


def _split_action(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Split the words into the action (default: show) and the ids.

    :raises ConfigError: a word is neither.
    """
    action, ids = (words[0], words[1:]) if words[:1] and words[0] in ACTIONS else ("", words)
    for word in ids:
        if not _BEGINNING_OF_ID.fullmatch(word):
            similar = nearest_word(word, ACTIONS) if not action else None
            hint = f"did you mean `inbox {similar}`?" if similar else "`inbox list` shows the ids"
            raise ConfigError(f"{word} is not the id of a message; {hint}")
    if action == "show" and not ids:
        raise ConfigError("name the mail to show: mailcheck inbox show ID")
    if action == "list" and ids:
        raise ConfigError("`inbox list` takes no ids; `inbox show ID` shows a mail")
    return action, ids


def _find_ids(inbox: Mailcheck, beginnings: Sequence[str]) -> list[str]:
    """Return the whole ids of messages.

    :raises ConfigError: no message, or more than one, has an id with this beginning.
    """
    if all(len(beginning) == LENGTH_OF_ID for beginning in beginnings):
        return list(beginnings)
    known = [mail["id"] for mail in _list_all(inbox)]
    found = []
    for beginning in beginnings:
        matching = [known_id for known_id in known if known_id.startswith(beginning.lower())]
        if len(matching) != 1:
            number = "no message has" if not matching else f"{len(matching)} messages have"
            raise ConfigError(f"{number} an id that begins with {beginning}")
        found += matching
    return found


def _list(inbox: Mailcheck, options: argparse.Namespace, limit: int | None) -> Mails:
    """Return the requested page, or all mails as one page."""
    query, filters = options.query, _filters(options)
    if options.all:
        return _list_all(inbox, query, filters)
    limit = LISTED if limit is None else limit
    return inbox.messages(q=query, limit=limit, page=options.page, **filters)


def _list_all(inbox: Mailcheck, query: str | None = None, filters: Filters | None = None) -> Mails:
    filters = filters or {}
    found = page = inbox.messages(q=query, limit=LARGEST_PAGE, **filters)
    ids = {mail["id"] for mail in found}
    while page.next_page is not None:
        page = inbox.messages(q=query, limit=LARGEST_PAGE, page=page.next_page, **filters)
        # Mail that arrives meanwhile moves others to the next page, where they are listed again.
        found += [mail for mail in page if mail["id"] not in ids]
        ids.update(mail["id"] for mail in page)
    found.next_page = None
    return found


def send_sample(inbox: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck send-sample``: send a sample mail, and print how to wait for it."""
    server = options.server or mail_server(inbox)
    address = inbox.address(SAMPLE_TAG)
    try:
        where = parse_listen_address(server)
    except ValueError:
        where = None
    if where is None or where.host is None:
        raise ConfigError("name the mail server with --server host:port")
    recipient = options.recipient or address.email
    try:
        with smtplib.SMTP(where.host, where.port or 25, timeout=SAMPLE_TIMEOUT) as smtp:
            smtp.send_message(_sample(recipient))
    except smtplib.SMTPException as error:
        console.print_note(f"mailcheck: {server} did not accept the mail: {why_not_sent(error)}")
        return EXIT_PROBLEM
    except OSError as error:
        console.print_note(f"mailcheck: {server} cannot be reached: {cause_of(error)}")
        return EXIT_UNDETERMINED
    console.print_line(f"sent to {recipient}")
    if not options.recipient:
        wait = ("wait", "--tag", SAMPLE_TAG, "--after", address.cursor, "--code")
        console.print_note(f"next: {command_line(options, *wait)}")
    return EXIT_FINE


def mail_server(inbox: Mailcheck) -> str:
    """Return the mail server of the daemon for nearby programs: host:port, or a domain.

    :raises MailcheckError: the daemon reports an error, or cannot be reached.
    """
    return str(inbox.request("GET", "/inbox")["mailServer"])


def _filters(options: argparse.Namespace) -> Filters:
    """Return the filters among the options."""
    given = ((name, getattr(options, name, None)) for name in Filters.__annotations__)
    return cast(Filters, {name: value for name, value in given if value is not None})


def _wait(
    inbox: Mailcheck, filters: Filters, options: argparse.Namespace, console: Console
) -> Sequence[Mail]:
    """Return the expected mails, oldest first: recent ones, or new ones.

    :raises MailcheckError: too few arrived, or the daemon reports an error.
    """
    timeout = DEFAULT_WAIT if options.timeout is None else options.timeout
    after, began = inbox.cursor() if options.new else options.after, time.time()
    if options.count is None:
        mails = [inbox.wait(after=after, timeout=timeout, **filters)]
    else:
        mails = inbox.wait_many(options.count, after=after, timeout=timeout, **filters)
    received_at = datetime.fromisoformat(mails[-1]["receivedAt"]).timestamp()
    if after is None and received_at < began:
        seconds = round(began - received_at)
        age = f"{seconds // 60} min {seconds % 60} s" if seconds >= 60 else f"{seconds} s"
        console.print_note(f"it arrived {age} ago; --new waits for the next one")
    return mails


def _delete(
    inbox: Mailcheck, ids: Sequence[str], options: argparse.Namespace, console: Console
) -> int:
    """``mailcheck inbox delete``: by ids, by tag, or the whole inbox."""
    has_one = [bool(ids), options.tag is not None, options.all].count(True) == 1
    # With an option that narrows a list only, less is meant than would be deleted.
    narrows = any(option is not None for option in (options.query, options.limit, options.page))
    if narrows or not has_one:
        console.print_note("mailcheck: name the mails to delete: ids, --tag TAG or --all")
        return EXIT_USAGE
    for message_id in _find_ids(inbox, ids):
        inbox.delete(message_id)
    deleted = len(ids)
    if not ids:
        tag = {} if options.all else {"tag": options.tag}
        deleted = inbox.request("DELETE", "/inbox/messages", tag)["deleted"]
    console.print_note(f"deleted: {deleted}")
    return EXIT_FINE


def _add_shape(parser: argparse.ArgumentParser, code: str = "print only the one-time code") -> None:
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--code", action="store_true", help=code)
    shape.add_argument("--link", action="store_true", help=code.replace("one-time code", "link"))
    shape.add_argument(
        "--json", action="store_true", help="print one JSON document, as the API returns it"
    )
    shape.add_argument("--jsonl", action="store_true", help="print JSON, one line for each mail")
    shape.add_argument(
        "--raw", action="store_true", help="print the unchanged bytes of the mail, unescaped"
    )


def _print_mails(mails: Sequence[Mail], options: argparse.Namespace, console: Console) -> int:
    """Print a line for each mail."""
    if options.code or options.link or options.raw:
        return _print_whole(mails, options, console)
    for mail in mails:
        console.print_text(json.dumps(mail) if options.jsonl else _one_line(mail))
    return EXIT_FINE


def _print_whole(mails: Sequence[Mail], options: argparse.Namespace, console: Console) -> int:
    """Print mails, or the chosen part of each. Stop at the first mail without this part."""
    try:
        if options.json:
            whole = [mail.whole() for mail in mails]
            console.print_json(whole[0] if len(whole) == 1 else {"messages": whole})
            return EXIT_FINE
        for mail in mails:
            _print_mail(mail, options, console)
    except MailcheckError as error:
        return report_problem(error, console)
    return EXIT_FINE


def _print_mail(mail: Mail, options: argparse.Namespace, console: Console) -> None:
    if options.code:
        console.print_line(mail.code)
    elif options.link:
        console.print_line(mail.link)
    elif options.raw:
        console.write_bytes(mail.eml())
    elif options.jsonl:
        console.print_text(json.dumps(mail.whole()))
    else:
        console.print_line(_one_line(mail))
        for name, values in (("code", mail["codes"]), ("link", mail["links"])):
            for value in values:
                best = "  <- best link" if value == mail["bestLink"] else ""
                console.print_line(f"{name}: {value}{best}")
        console.print_line("")
        console.print_text(mail.text or "(no text part; --json shows the HTML)")


def _one_line(mail: Mail) -> str:
    return f"{mail['receivedAt']}  {mail['id']}  {mail['to']}  {mail['from']['address']}  " + (
        mail["subject"] or "(no subject)"
    )


def _sample(recipient: str) -> EmailMessage:
    mail = EmailMessage()
    mail["From"] = "mailcheck <sample@example.com>"
    mail["To"] = recipient
    mail["Subject"] = "Confirm your address"
    mail.set_content(
        f"Your verification code is {SAMPLE_CODE}\n\n"
        f"Or confirm your address here: https://example.com/confirm?token=7f3a\n"
    )
    mail.add_alternative(
        f"<p>Your verification code is</p><h1>{SAMPLE_CODE}</h1>"
        f'<p><a href="https://example.com/confirm?token=7f3a">Confirm your address</a></p>',
        subtype="html",
    )
    return mail
