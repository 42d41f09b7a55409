"""A disk that other programs fill completely: deleting still works, for any time."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from twisted.internet.defer import Deferred

from mailcheck.core.accounts import Quota
from mailcheck.core.errors import StoreFull
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import HOUR
from mailcheck.core.messages import Delivery
from mailcheck.daemon.retention import Retention
from mailcheck.engines.sqlite import SqliteEngine
from mailcheck.operations.inbox.messages import DeleteMessages
from mailcheck.ports.engine import Transaction
from mailcheck.store.accounts.account_store import AccountStore
from mailcheck.store.content_store import ContentStore
from mailcheck.store.mail_store import MailStore
from mailcheck.store.messages import ExpiryStore
from mailcheck.workers.scheduling import DirectWorker
from tests.engines.deliveries import NOON, account, at, content, delivery, noted, recipient, refusal
from tests.house import result_of
from tests.small_disk import SmallDisk, mounted

pytestmark = pytest.mark.interop

ANN = AccountId("ann")
KIBIBYTE = 1024
DISK_SIZE = 12 * KIBIBYTE * KIBIBYTE


class Store:
    """The stores of one engine in a folder, with an inbox."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "mail.db"
        self.open()

    def open(self) -> None:
        """Open the file, for the first time or again."""
        self.engine = SqliteEngine(str(self.file), DirectWorker(), DirectWorker())
        self.engine.open()
        self.mails = MailStore(self.engine, Quota(10**6, 10**12))
        self.contents = ContentStore(self.engine)
        self.expiry = ExpiryStore(self.engine)

    kept = 60
    """Minutes for which mail is kept."""

    def deliver(self, octets: int) -> Delivery:
        """Store a mail of Ann's; like the daemon, check the free space before."""
        self.engine.free_bytes()
        one = delivery(recipient("ann", "full"), raw=bytes(octets), expires_at=at(self.kept))
        result_of(self.mails.deliver(one))
        return one

    def deliver_until_full(self, octets: int, most: int) -> list[Delivery]:
        """Store mails until the disk is full, or up to a maximum."""
        sent = []
        for _ in range(most):
            try:
                sent.append(self.deliver(octets))
            except StoreFull:
                break
        return sent

    def delete(self, sent: Sequence[Delivery]) -> None:
        """Delete mails, one after the other."""
        for one in sent:
            assert result_of(self.mails.delete_message(ANN, one.message_ids[0], NOON))

    def pages(self) -> tuple[int, int]:
        """Return the bytes of pages in the file, and those of free pages."""

        def query(transaction: Transaction) -> tuple[int, int]:
            page_count, free, size = (
                transaction.rows(f"PRAGMA {name}")[0][0]
                for name in ("page_count", "freelist_count", "page_size")
            )
            return page_count * size, free * size

        found: tuple[int, int] = result_of(self.engine.read(query))
        return found

    def blocks(self) -> int:
        """Return the allocated bytes of the file."""
        return self.file.stat().st_blocks * 512

    def close(self) -> None:
        """Close the engine."""
        result_of(self.engine.close())


def new_store(folder: Path) -> Store:
    """Return a store with Ann's inbox."""
    store = Store(folder)
    result_of(AccountStore(store.engine).add_account(account("ann"), noted()))
    return store


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """A disk that can be filled."""
    with mounted(tmp_path / "small", DISK_SIZE) as disk:
        if disk is None:
            pytest.skip("mounting a file system is not permitted here")
        yield disk


@pytest.fixture
def store(disk: SmallDisk) -> Iterator[Store]:
    """Open a store on the small disk."""
    store = new_store(disk.folder)
    yield store
    store.close()


def test_pages_have_blocks(tmp_path: Path) -> None:
    """The file has blocks for all committed pages, so a checkpoint needs no more."""
    store = new_store(tmp_path)
    for number in range(60):
        store.deliver(400 * KIBIBYTE if number % 3 else KIBIBYTE)
        pages, _ = store.pages()
        assert store.blocks() >= pages > number * 256 * KIBIBYTE
    store.close()


@pytest.mark.parametrize(
    ("octets", "most"),
    [
        (70 * KIBIBYTE, 20),  # more than the size of the log
        (70 * KIBIBYTE, 1_000),  # as many as the disk can hold
        (4 * KIBIBYTE, 300),
        (3_000 * KIBIBYTE, 1),
    ],
)
def test_deleting(disk: SmallDisk, store: Store, octets: int, most: int) -> None:
    """Each mail can be deleted, however much of it is in the log when the disk becomes full."""
    sent = store.deliver_until_full(octets, most)
    disk.fill_up()
    assert store.engine.free_bytes() == 0
    store.delete(sent)
    # A checkpoint may return the spare blocks of the file.
    assert (store.engine.free_bytes() or 0) < 256 * KIBIBYTE
    disk.make_room()
    store.deliver(octets)


def test_deleting_after_other_writes(disk: SmallDisk, store: Store) -> None:
    """Other writes on a full disk are rejected before they use the reserve for deleting."""
    sent = store.deliver_until_full(70 * KIBIBYTE, 20)
    disk.fill_up()
    contents = [store.contents.save_content(one.id, content("x" * 10 * KIBIBYTE)) for one in sent]
    saved = [result_of(one.addErrback(lambda failure: failure.trap(StoreFull))) for one in contents]
    assert None in saved
    assert StoreFull in saved
    for number in range(300):
        result_of(store.mails.note_refusal(refusal("ann", number)).addErrback(lambda _: None))
    pages, _ = store.pages()
    assert store.blocks() > pages
    store.delete(sent)


def test_refusals(disk: SmallDisk, store: Store) -> None:
    """On a full disk the refusal of a mail is still recorded."""
    store.deliver_until_full(70 * KIBIBYTE, 1_000)
    disk.fill_up()
    for number in range(100):
        result_of(store.mails.note_refusal(refusal("ann", number)))
    assert len(result_of(store.mails.recent_refusals(ANN, NOON, 1_000))) == 100


def test_deleting_many_mails(disk: SmallDisk, store: Store) -> None:
    """An inbox with more mails than one transaction can delete is emptied in smaller ones."""
    sent = store.deliver_until_full(KIBIBYTE, 2_500)
    disk.fill_up()
    in_one = store.mails.delete_matches(ANN, MessageFilter(), NOON, len(sent))
    with pytest.raises(StoreFull):
        result_of(in_one)
    deleting = DeleteMessages(store.mails, lambda: NOON, lambda _: None)
    emptied = Deferred.fromCoroutine(deleting.matching(ANN, MessageFilter()))
    assert result_of(emptied) == len(sent)


def test_expiry(disk: SmallDisk, store: Store) -> None:
    """Expiry continues and returns its space to the disk, until mail is accepted again."""
    sent = store.deliver_until_full(70 * KIBIBYTE, 1_000)
    disk.fill_up()
    size = store.file.stat().st_size
    sweep = Retention(store.expiry, HOUR, lambda: at(61), lambda _: None).sweep
    for _ in range(20):
        result_of(Deferred.fromCoroutine(sweep()))
    assert result_of(store.mails.find_message(ANN, sent[0].message_ids[0], NOON)) is None
    assert store.pages()[1] == 0
    assert store.file.stat().st_size < size // 4
    assert (store.engine.free_bytes() or 0) > size // 2
    store.deliver(70 * KIBIBYTE)


def delete_mail(disk: SmallDisk, store: Store) -> None:
    """Delete all mail of the inbox."""
    deleting = DeleteMessages(store.mails, lambda: NOON, lambda _: None)
    result_of(Deferred.fromCoroutine(deleting.matching(ANN, MessageFilter())))


def shorten_retention(disk: SmallDisk, store: Store) -> None:
    """Restart with a retention of a day, when all mail is older than that."""
    store.close()
    store.open()
    sweep = Retention(store.expiry, 24 * HOUR, lambda: at(25 * 60), lambda _: None).sweep
    for _ in range(20):
        result_of(Deferred.fromCoroutine(sweep()))


def enlarge_disk(disk: SmallDisk, store: Store) -> None:
    """Make the disk twice as large."""
    disk.resize(2 * DISK_SIZE)


@pytest.mark.parametrize("remedy", [delete_mail, shorten_retention, enlarge_disk])
def test_each_remedy(
    disk: SmallDisk, store: Store, remedy: Callable[[SmallDisk, Store], None]
) -> None:
    """Each remedy that the documents name makes room on a disk that is full to the last byte."""
    store.kept = 7 * 24 * 60
    store.deliver_until_full(70 * KIBIBYTE, 1_000)
    disk.fill_up()
    with pytest.raises(StoreFull):
        store.deliver(70 * KIBIBYTE)
    remedy(disk, store)
    store.deliver(70 * KIBIBYTE)


@pytest.mark.parametrize("most", [8, 20])
def test_starting(disk: SmallDisk, store: Store, most: int) -> None:
    """The store starts on a disk that became full meanwhile, and can delete, repeatedly."""
    sent = store.deliver_until_full(70 * KIBIBYTE, most)
    for one in sent[:-1]:
        store.close()
        disk.fill_up()
        store.open()
        assert store.engine.free_bytes() == 0
        store.delete([one])
    store.delete(sent[-1:])
