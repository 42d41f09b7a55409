"""Reading a Maildir: unread mails once, marked or moved, and never deleted."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from mailcheck.core.domains.report_mailboxes import ReportMailbox, Then
from mailcheck.ports.report_mailboxes import MailboxFailed, Place
from mailcheck.probes import maildir_mailbox
from mailcheck.probes.maildir_mailbox import MaildirMailbox, OpenMaildir
from mailcheck.workers.scheduling import DirectWorker
from tests.house import run


def make_maildir(path: Path) -> Path:
    """Create an empty Maildir."""
    for name in ("cur", "new", "tmp"):
        (path / name).mkdir(parents=True)
    return path


@pytest.fixture
def maildir(tmp_path: Path) -> Path:
    """A Maildir with two unread mails and one that was read."""
    folder = make_maildir(tmp_path / "mail")
    (folder / "new" / "1.one.host").write_bytes(b"one")
    (folder / "cur" / "2.two.host:2,F").write_bytes(b"two")
    (folder / "cur" / "3.three.host:2,RS").write_bytes(b"three")
    (folder / "tmp" / "4.four.host").write_bytes(b"half of")
    return folder


def files(folder: Path) -> dict[str, bytes]:
    """Return the contents of all files below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def opened(mailbox: MaildirMailbox) -> OpenMaildir:
    """Open a Maildir."""
    folder: OpenMaildir = run(mailbox.open("", Place()))
    return folder


def of(folder: Path, then: Then = Then.MARK, move_to: str = "") -> MaildirMailbox:
    """Return the mailbox of a Maildir."""
    mailbox = ReportMailbox("shop", maildir=str(folder), then=then, move_to=move_to)
    return MaildirMailbox(mailbox, DirectWorker())


def test_unread_mails_are_read_and_marked(maildir: Path) -> None:
    """Reports get the flag S. Other mails stay as they are, and are not read a second time."""
    mailbox = of(maildir)
    folder = opened(mailbox)
    batch = run(folder.next_batch(5))
    assert [mail.raw_message for mail in batch.mails] == [b"one", b"two"]
    assert run(folder.next_batch(5)) is None
    run(folder.finish([mail.key for mail in batch.mails[:1]]))
    assert files(maildir) == {
        "cur/1.one.host:2,S": b"one",
        "cur/2.two.host:2,F": b"two",
        "cur/3.three.host:2,RS": b"three",
        "tmp/4.four.host": b"half of",
    }
    assert run(opened(mailbox).next_batch(5)) is None
    (again,) = run(opened(of(maildir)).next_batch(5)).mails
    assert again.raw_message == b"two"


def test_mails_that_could_not_be_stored_are_read_again(maildir: Path) -> None:
    """Mails are read again until they are finished, and each is new once, also after a restart."""
    mailbox, place = of(maildir), Place()
    for _ in range(2):
        folder = run(mailbox.open("", place))
        batch = run(folder.next_batch(5))
        assert [(mail.raw_message, mail.is_known) for mail in batch.mails] == [
            (b"one", False),
            (b"two", False),
        ]
    run(folder.finish([]))
    assert run(opened(mailbox).next_batch(5)) is None
    late = maildir / "new" / "5.five.host"
    late.write_bytes(b"five")
    os.utime(late, (2**32, 2**32))
    batch = run(run(of(maildir).open("", batch.place)).next_batch(5))
    assert [mail.is_known for mail in batch.mails] == [True, True, False]


def test_mails_are_moved(maildir: Path, tmp_path: Path) -> None:
    """Reports are moved to another Maildir with their flags. A mail there is never replaced."""
    done = make_maildir(tmp_path / "done")
    mailbox = of(maildir, Then.MOVE, str(done))
    folder = opened(mailbox)
    keys = [mail.key for mail in run(folder.next_batch(5)).mails]
    run(folder.finish(keys))
    assert files(done) == {"cur/1.one.host:2,S": b"one", "cur/2.two.host:2,FS": b"two"}
    (maildir / "new" / "1.one.host").write_bytes(b"another")
    with pytest.raises(MailboxFailed, match="File exists"):
        run(folder.finish([str(maildir / "new" / "1.one.host")]))
    assert files(done)["cur/1.one.host:2,S"] == b"one"
    run(folder.finish(["/nowhere/5.gone"]))


def test_batches_are_bounded(maildir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch has few octets, and a mail that is too large is not read."""
    monkeypatch.setattr(maildir_mailbox, "BATCH_OCTETS", 4)
    monkeypatch.setattr(maildir_mailbox, "LARGEST_MAIL", 3)
    (maildir / "new" / "5.five.host").write_bytes(b"large")
    folder = opened(of(maildir))
    batches = []
    while (batch := run(folder.next_batch(5))) is not None:
        batches.append([mail.raw_message for mail in batch.mails])
    assert batches == [[b"one"], [b"two", None]]


def test_links_are_not_followed(maildir: Path, tmp_path: Path) -> None:
    """A link in a Maildir does not lead to a file outside."""
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    (maildir / "new" / "0.link.host").symlink_to(secret)
    mails = run(opened(of(maildir)).next_batch(5)).mails
    assert [mail.raw_message for mail in mails] == [b"one", b"two"]


def test_a_pipe_is_not_read(maildir: Path) -> None:
    """A pipe that replaces a file after the list was read does not keep the thread waiting."""
    folder = opened(of(maildir))
    (maildir / "new" / "1.one.host").unlink()
    os.mkfifo(maildir / "new" / "1.one.host")
    assert [mail.raw_message for mail in run(folder.next_batch(5)).mails] == [b"two"]


def test_a_folder_that_is_not_a_maildir(tmp_path: Path) -> None:
    """The operator learns which folder is missing."""
    with pytest.raises(MailboxFailed, match="new does not exist, so this is not a Maildir"):
        opened(of(tmp_path))
    folder = make_maildir(tmp_path / "mail")
    with pytest.raises(MailboxFailed, match="done/cur does not exist"):
        opened(of(folder, Then.MOVE, str(tmp_path / "done")))


def test_the_same_maildir_has_the_same_id(maildir: Path) -> None:
    """The state of a mailbox stays when its interval or its password changes, not its place."""
    one = ReportMailbox("shop", maildir=str(maildir))
    assert one.id == replace(one, interval=1, then=Then.MOVE, move_to="x", password="y").id
    assert one.id != replace(one, maildir="/elsewhere").id
    assert one.id != replace(one, account_name="other").id
