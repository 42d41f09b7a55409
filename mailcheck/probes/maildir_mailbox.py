"""Reading a Maildir on this machine (https://cr.yp.to/proto/maildir.html).

Mails that are marked as read are moved from ``new`` to ``cur``, with the flag S in their names.
Files are read in a thread. No file is deleted.
"""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from mailcheck.core.domains.report_mailboxes import (
    BATCH_OCTETS,
    LARGEST_MAIL,
    ReportMailbox,
    Then,
)
from mailcheck.ports.report_mailboxes import Batch, FetchedMail, MailboxFailed, Place, Remedy
from mailcheck.ports.workers import Worker

SEEN = "S"
_INFO = ":2,"
_MOST_KNOWN = 200_000
"""Maximum number of mails without reports whose names are remembered until the next start."""


class MaildirMailbox:
    """Implements `mailcheck.ports.report_mailboxes.MailboxOpener` for a Maildir.

    :param threads: runs what may block.
    """

    def __init__(self, mailbox: ReportMailbox, threads: Worker) -> None:
        self._mailbox = mailbox
        self._threads = threads
        self._known: set[str] = set()

    async def open(self, token: str, place: Place) -> "OpenMaildir":
        """List the unread mails, as defined by `MailboxOpener`."""
        found = await self._threads.run(partial(_list_unread, self._mailbox))
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        waiting = [path for path in found if _unique_part(path) not in self._known]
        return OpenMaildir(self._mailbox, self._threads, waiting, self._known, place)


class OpenMaildir(Struct, eq=False):
    """The unread mails of a Maildir. ``known`` gets the names of mails that were read.

    ``place`` is that of the last look. It only tells which mails are counted as new.
    """

    mailbox: ReportMailbox
    threads: Worker
    waiting: Sequence[Path]
    known: set[str]
    place: Place
    newest: int = 0
    chosen: Sequence[Path] = ()

    async def next_batch(self, limit: int) -> Batch | None:
        """Read the next mails, as defined by `OpenMailbox`."""
        if not self.waiting:
            return None
        read = partial(_read_some, self.waiting[:limit], self.place.last_uid)
        mails, newest = await self.threads.run(read)
        self.chosen, self.waiting = self.waiting[: len(mails)], self.waiting[len(mails) :]
        self.newest = max(self.newest, newest, self.place.last_uid)
        return Batch([mail for mail in mails if mail is not None], Place(0, self.newest))

    async def finish(self, keys: Sequence[str]) -> None:
        """Mark or move mails, as defined by `OpenMailbox`."""
        await self.threads.run(partial(_finish, self.mailbox, keys))
        self.known.update(map(_unique_part, self.chosen))

    async def close(self) -> None:
        """Close it, which has no effect."""


def _list_unread(mailbox: ReportMailbox) -> list[Path]:
    """Return the files of unread mails, oldest first.

    :raises MailboxFailed: it is not a Maildir, or may not be read or changed.
    """
    folder = Path(mailbox.maildir)
    target = Path(mailbox.move_to) if mailbox.then is Then.MOVE else folder
    for place in (folder / "new", folder / "cur", target / "cur"):
        if not place.is_dir():
            raise MailboxFailed(
                f"{place} does not exist, so this is not a Maildir.", Remedy.OPERATOR
            )
        if not os.access(place, os.R_OK | os.W_OK | os.X_OK):
            problem = f"The user that mailcheck runs as may not read and write {place}."
            raise MailboxFailed(problem, Remedy.OPERATOR)
    try:
        return sorted(_unread(folder), key=lambda path: path.name)
    except OSError as error:
        raise MailboxFailed(f"{folder} cannot be listed: {error.strerror}.") from error


def _unread(folder: Path) -> Iterator[Path]:
    for place in ("new", "cur"):
        for entry in os.scandir(folder / place):
            is_file = entry.is_file(follow_symlinks=False) and not entry.name.startswith(".")
            if is_file and SEEN not in entry.name.partition(_INFO)[2]:
                yield Path(entry.path)


def _read_some(paths: Sequence[Path], last: int) -> tuple[list[FetchedMail | None], int]:
    """Read at least one file, and others while they are small together. `None`: it is gone.

    Return also the time of the newest file. Files up to the time ``last`` are known.
    """
    mails: list[FetchedMail | None] = []
    octets = newest = 0
    for path in paths:
        try:
            found = path.stat()
            is_large, changed_at = found.st_size > LARGEST_MAIL, found.st_mtime_ns // 1_000_000
            octets += 0 if is_large else found.st_size
            if mails and octets > BATCH_OCTETS:
                break
            raw_message = None if is_large else _read(path)
            mails.append(FetchedMail(str(path), raw_message, is_known=changed_at <= last))
            newest = max(newest, changed_at)
        except FileNotFoundError:
            mails.append(None)
        except OSError as error:
            raise MailboxFailed(f"{path} cannot be read: {error.strerror}.") from error
    return mails, newest


def _read(path: Path) -> bytes:
    # The owner of the Maildir could replace the file by a link to a file of this daemon, or by a
    # pipe that nobody writes to.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise FileNotFoundError
        return file.read(LARGEST_MAIL)


def _finish(mailbox: ReportMailbox, keys: Sequence[str]) -> None:
    """Add the flag S to each mail, in its Maildir or in the Maildir of ``move_to``."""
    to = Path(mailbox.move_to if mailbox.then is Then.MOVE else mailbox.maildir) / "cur"
    for key in keys:
        path = Path(key)
        unique, _, flags = path.name.partition(_INFO)
        name = f"{unique}{_INFO}{''.join(sorted({*flags, SEEN}))}"
        try:
            if (to / name).exists():  # to rename would delete that mail
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            path.rename(to / name)
        except FileNotFoundError:
            continue  # its owner has moved it meanwhile
        except OSError as error:
            problem = f"{path} cannot be moved to {to}: {error.strerror}."
            raise MailboxFailed(problem, Remedy.OPERATOR) from error


def _unique_part(path: Path) -> str:
    return path.name.partition(_INFO)[0]
