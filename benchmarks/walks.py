"""Count the files and functions of mailcheck that four typical requests run through.

    .venv/bin/python -m benchmarks.walks            # the figures
    .venv/bin/python -m benchmarks.walks --files    # and the names of the files, as Markdown

Each request is made twice and the second one is counted, so that one-time work is left out. Work of
child processes is left out too. DNS and mail hosts are the fakes of the tests, so the code that
queries them is not run. The store is SQLite in memory.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import CodeType, FrameType
from typing import Any

import mailcheck
from mailcheck.ops.journal import MailJournal, Pace
from mailcheck.smtp.protocol import MailFactory
from mailcheck.smtp.settings import SmtpSettings
from mailcheck.smtp.verbs import VERBS
from mailcheck.workers import scheduling
from tests.house import House, config_in_memory, mail
from tests.operations.scored_mails import PERFECT, received
from tests.smtp.talk import HOST_NAME, PUBLIC_IP, Talk
from tests.web.checking import checking_house, zone_with
from tests.web.provider_requests import encode, headers_for, sample
from tests.web.scored_house import ScoredHouse

HOUSE = str(Path(mailcheck.__file__).parent)
CHILD = scheduling.__file__
"""Work of child processes is called from this module."""

MAIL_TO_WAITER = "a mail to the client that waits for it"
BLOCKLISTS = "a blocklist check of a domain"
SPF_IN_REPORT = "SPF in the report of a mail"
SEND_API = "a mail that is sent with the API of SendGrid"

AT_F3D0B05 = {MAIL_TO_WAITER: (54, 162), BLOCKLISTS: (48, 148), SPF_IN_REPORT: (128, 453)}
"""Files and functions of version f3d0b05, counted the same way."""


@dataclass
class Footprints:
    """The functions and files that were run while the trace was active."""

    functions: set[CodeType] = field(default_factory=set)
    _child: FrameType | None = None

    @property
    def files(self) -> list[str]:
        """Files below the package's folder, sorted."""
        entered = {code.co_filename for code in self.functions}
        return sorted(Path(name).relative_to(HOUSE).as_posix() for name in entered)

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Trace calls while the block runs."""
        sys.setprofile(self._see)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _see(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "return" and frame is self._child:
            self._child = None
        if event != "call" or self._child is not None:
            return
        if code.co_filename == CHILD:
            self._child = frame
        elif code.co_filename.startswith(HOUSE) and not code.co_name.startswith("<"):
            self.functions.add(code)


def twice(walk: Callable[[Footprints], None]) -> Footprints:
    """Make a request twice, and trace the second one."""
    walk(Footprints())
    counted = Footprints()
    walk(counted)
    return counted


def mail_to_waiter() -> Footprints:
    """Trace from the first byte of a mail on a greeted connection to the response of a wait."""
    house = House(config_in_memory())
    receiver = house.assembly.receiver
    factory = MailFactory(
        VERBS, receiver, SmtpSettings(HOST_NAME), house.clock, MailJournal("mail", Pace())
    )
    talk = Talk(factory, PUBLIC_IP)
    talk.say(b"EHLO client.example\r\n")

    def walk(seen: Footprints) -> None:
        waiting = house.ask("GET", f"/inbox/wait?after={house.get('/inbox').json['cursor']}")
        with seen.taken():
            talk.say(
                b"MAIL FROM:<shop@example.com>\r\n",
                b"RCPT TO:<%s>\r\n" % house.address("signup").encode(),
                b"DATA\r\n",
                mail() + b".\r\n",
            )
            house.pass_time(0)
            waiting.is_answered  # noqa: B018
        require(waiting.answer().status)

    footprints = twice(walk)
    talk.leave()
    house.close()
    return footprints


def blocklist_check() -> Footprints:
    """Trace from the request to the response, for a domain that was not checked before."""
    names = ("one.example", "other.example")
    zone = zone_with(dict.fromkeys(names, PERFECT["sender.example"]))
    asked = iter(names)
    house = checking_house(zone)

    def walk(seen: Footprints) -> None:
        with seen.taken():
            answer = house.ask("GET", f"/tools/blacklist-check?query={next(asked)}")
            house.pass_time(0)
        require(answer.answer().status)

    footprints = twice(walk)
    house.close()
    return footprints


def spf_in_report() -> Footprints:
    """Trace from the stored mail of a test to the response that shows its report."""
    scored = ScoredHouse()

    def walk(seen: Footprints) -> None:
        test_id = scored.generate()
        with seen.taken():
            scored.send(test_id, received())
            answer = scored.house.ask("GET", f"/test/{test_id}")
        require(answer.answer().status)

    footprints = twice(walk)
    scored.close()
    return footprints


def send_api() -> Footprints:
    """Trace from the request of a SendGrid client to its response."""
    house = House(config_in_memory())
    path = "/providers/sendgrid/v3/mail/send"
    body = encode(path, sample(path, "you@customer.example"))

    def walk(seen: Footprints) -> None:
        with seen.taken():
            answer = house.open(path, "POST", data=body, headers=headers_for(path, house.key))
            house.pass_time(0)
        require(answer.answer().status)

    footprints = twice(walk)
    house.close()
    return footprints


def require(status: int) -> None:
    """End the benchmark if a request failed."""
    if status not in (200, 202):
        raise SystemExit(f"the walk ended with status {status}")


def show_files(files: list[str]) -> None:
    """Print the files by folder, as Markdown."""
    folders: dict[str, list[str]] = defaultdict(list)
    for name in files:
        path = PurePosixPath(name)
        folders[str(path.parent)].append(path.stem)
    print()
    for folder, names in folders.items():
        print(f"* `{folder}/` {', '.join(names)}")
    print()


def main() -> None:
    """Trace the requests, and print the counts."""
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--files", action="store_true", help="list the files, in Markdown")
    options = arguments.parse_args()
    walks: dict[str, Any] = {
        MAIL_TO_WAITER: mail_to_waiter,
        BLOCKLISTS: blocklist_check,
        SPF_IN_REPORT: spf_in_report,
        SEND_API: send_api,
    }
    for name, walk in walks.items():
        seen = walk()
        files, functions = AT_F3D0B05.get(name, ("-", "-"))
        counted = (
            f"{len(seen.files)} files [{files}], {len(seen.functions)} functions [{functions}]"
        )
        print(f"**{name[0].upper()}{name[1:]}**: {counted}")
        if options.files:
            show_files(seen.files)


if __name__ == "__main__":
    main()
