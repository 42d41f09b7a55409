"""The files of ``mailcheck reports import``: of folders, mailboxes and archives, in parts."""

import sys
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

PART = 8 * 1024 * 1024
"""Number of octets after which a part is sent. An upload of 1 Mbit/s then ends in a minute."""

PART_FILES = 500
"""Maximum number of files of a part."""

LARGEST = 60 * 1024 * 1024
"""Maximum number of octets of a file that is sent as a whole."""

_MAILDIR = ("cur", "new")
_FROM = b"From "


class FileToImport(Struct, frozen=True):
    """A file, or why it cannot be read."""

    name: str
    data: bytes = b""
    why: str = ""


def find_files(paths: Iterable[str]) -> Iterator[FileToImport]:
    """Yield the files of paths. Large archives and mailboxes are yielded file by file."""
    for path in paths:
        if path == "-":
            yield FileToImport("stdin", sys.stdin.buffer.read(LARGEST))
            continue
        for file in _walk(Path(path)):
            try:
                yield from _read(file)
            except OSError as error:
                yield FileToImport(str(file), why=f"it cannot be read: {error.strerror}")
            except zipfile.BadZipFile:
                yield FileToImport(str(file), why="the zip file is damaged")


def make_parts(files: Iterable[FileToImport]) -> Iterator[list[FileToImport]]:
    """Yield files in parts of a limited size."""
    part: list[FileToImport] = []
    size = 0
    for file in files:
        if part and (size + len(file.data) > PART or len(part) == PART_FILES):
            yield part
            part, size = [], 0
        part.append(file)
        size += len(file.data)
    if part:
        yield part


def _walk(path: Path) -> Iterator[Path]:
    """Yield the files below a path. Of a Maildir, only its mails are yielded."""
    if not path.is_dir():
        yield path
        return
    is_maildir = all((path / name).is_dir() for name in _MAILDIR)
    for inner in sorted(path.iterdir()):
        if is_maildir:
            # Folders of a Maildir are Maildirs whose names begin with a dot.
            is_wanted = inner.name in _MAILDIR or (inner.is_dir() and (inner / "cur").is_dir())
        else:
            is_wanted = not inner.name.startswith(".")
        if is_wanted:
            yield from _walk(inner)


def _read(path: Path) -> Iterator[FileToImport]:
    name = str(path)
    with path.open("rb") as file:
        start = file.read(PART + 1)
        if len(start) <= PART:
            yield FileToImport(name, start)
        elif start.startswith(b"PK"):
            with zipfile.ZipFile(path) as archive:
                yield from _unzip(name, archive)
        elif start.startswith(_FROM):
            file.seek(0)
            yield from _split_mailbox(name, file)
        else:
            rest = file.read(LARGEST - len(start) + 1)
            if len(start) + len(rest) > LARGEST:
                yield FileToImport(name, why=f"it is over {LARGEST // 2**20} MB")
            else:
                yield FileToImport(name, start + rest)


def _unzip(name: str, archive: zipfile.ZipFile) -> Iterator[FileToImport]:
    for entry in archive.infolist():
        inner = f"{name}/{entry.filename}"
        if entry.is_dir():
            continue
        if entry.file_size > LARGEST:
            yield FileToImport(inner, why=f"it is over {LARGEST // 2**20} MB")
            continue
        why = "it cannot be unpacked"
        with suppress(zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError):
            yield FileToImport(inner, archive.read(entry))
            continue
        yield FileToImport(inner, why=why)


def _split_mailbox(name: str, lines: Iterable[bytes]) -> Iterator[FileToImport]:
    """Yield the mails of a mailbox with their first lines (RFC 4155)."""
    mail: list[bytes] = []
    number, is_after_blank = 0, True
    for line in lines:
        if is_after_blank and mail and line.startswith(_FROM):
            number += 1
            yield FileToImport(f"{name} mail {number}", b"".join(mail))
            mail = []
        mail.append(line)
        is_after_blank = not line.strip(b"\r\n")
    yield FileToImport(f"{name} mail {number + 1}", b"".join(mail))
