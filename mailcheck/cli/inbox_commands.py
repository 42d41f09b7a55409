"""``mailcheck wait``, ``mailcheck inbox``, ``mailcheck send-sample``: they talk to a daemon."""

import argparse
import json
import smtplib
from email.message import EmailMessage

from mailcheck.cli.commands import Console
from mailcheck.cli.daemon_access import add_daemon_options, reach_daemon, report_problem
from mailcheck.cli.exit_statuses import EXIT_FINE, EXIT_PROBLEM
from mailcheck.clients.mailcheck_client import Mail, MailcheckError
from mailcheck.config.reading import ConfigError
from mailcheck.core.network_addresses import parse_listen_address

SAMPLE_TAG = "sample"
SAMPLE_CODE = "482913"
SAMPLE_TIMEOUT = 10.0


def add_wait(wait: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck wait``."""
    add_daemon_options(wait)
    wait.add_argument("--tag", help="only mail to this tag; empty: only untagged mail")
    wait.add_argument("--after", metavar="CURSOR", help="only mail after this cursor")
    wait.add_argument("--from", dest="author", help="only mail whose author contains this")
    wait.add_argument("--subject", help="only mail whose subject contains this")
    wait.add_argument("--timeout", type=float, default=30.0, metavar="SECONDS")
    _add_shape(wait)
    wait.set_defaults(command=wait_for_mail)


def add_inbox(inbox: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck inbox``."""
    add_daemon_options(inbox)
    inbox.add_argument("id", nargs="?", help="show this mail")
    inbox.add_argument("--tag", help="list only mail to this tag")
    inbox.add_argument(
        "-q",
        "--query",
        metavar="QUERY",
        help="list only mail that matches, as in 'from:shop \"your order\" newer:2h'; all terms "
        "stand in docs/search.md",
    )
    inbox.add_argument("--limit", type=int, default=20, help="mails to list, the newest (20)")
    _add_shape(inbox)
    inbox.set_defaults(command=show_inbox)


def add_send_sample(sample: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck send-sample``."""
    add_daemon_options(sample)
    sample.add_argument("recipient", nargs="?", help="an inbox address; yours by default")
    sample.add_argument("--server", metavar="HOST:PORT", help="where mail is received")
    sample.set_defaults(command=send_sample)


def wait_for_mail(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck wait``: exit status 1 when no mail comes, with what did come on stderr."""
    inbox = reach_daemon(options, console)
    try:
        mail = inbox.wait(
            tag=options.tag,
            after=options.after,
            timeout=options.timeout,
            subject=options.subject,
            from_=options.author,
        )
    except MailcheckError as error:
        return report_problem(error, console)
    return _print_mail(mail, options, console)


def show_inbox(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck inbox [ID]``."""
    inbox = reach_daemon(options, console)
    try:
        if options.id:
            return _print_mail(inbox.message(options.id), options, console)
        mails = inbox.messages(tag=options.tag, q=options.query, limit=options.limit)
    except MailcheckError as error:
        return report_problem(error, console)
    for mail in mails:
        console.say(json.dumps(mail) if options.json else _one_line(mail))
    return EXIT_FINE


def send_sample(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck send-sample``: prints the command that waits for it."""
    listen = options.server or next(iter(console.config.smtp.listen), "")
    try:
        server = parse_listen_address(listen)
    except ValueError:
        server = None
    if server is None or server.host is None:
        raise ConfigError("say where mail is received: --server host:port")
    try:
        address = reach_daemon(options, console).address(SAMPLE_TAG)
        recipient = options.recipient or address.email
        with smtplib.SMTP(server.host, server.port or 25, timeout=SAMPLE_TIMEOUT) as smtp:
            smtp.send_message(_sample(recipient))
    except (OSError, smtplib.SMTPException) as error:
        console.remark(f"mailcheck: {listen} did not take the mail: {error}")
        return EXIT_PROBLEM
    except MailcheckError as error:
        return report_problem(error, console)
    console.say(f"sent to {recipient}")
    if not options.recipient:
        console.remark(f"next: mailcheck wait --tag {SAMPLE_TAG} --after {address.cursor} --code")
    return EXIT_FINE


def _add_shape(parser: argparse.ArgumentParser) -> None:
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--code", action="store_true", help="print only the one-time code")
    shape.add_argument("--link", action="store_true", help="print only the link to click")
    shape.add_argument("--json", action="store_true", help="print the whole mail as JSON")


def _print_mail(mail: Mail, options: argparse.Namespace, console: Console) -> int:
    try:
        if options.code:
            console.say(mail.code)
        elif options.link:
            console.say(mail.link)
        elif options.json:
            console.say(json.dumps(mail, indent=2, ensure_ascii=False))
        else:
            _describe(mail, console)
    except MailcheckError as error:
        return report_problem(error, console)
    return EXIT_FINE


def _describe(mail: Mail, console: Console) -> None:
    console.say(_one_line(mail))
    for name, values in (("code", mail["codes"]), ("link", mail["links"])):
        for value in values:
            best = "  <- the one to click" if value == mail["bestLink"] else ""
            console.say(f"{name}: {value}{best}")
    console.say("")
    console.say(mail.text or "(no text part; --json shows the HTML)")


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
