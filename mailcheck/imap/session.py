"""The commands after the login (RFC 9051 6.3 and 6.4)."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from mailcheck.core.accounts import Caller
from mailcheck.core.cursors import Position
from mailcheck.core.errors import StoreUnavailable
from mailcheck.core.messages import Session as MailSession
from mailcheck.core.rights import Scope
from mailcheck.imap.commands import (
    Append,
    Authenticate,
    ChangeMailbox,
    Copy,
    Enable,
    Expunge,
    Fetch,
    ListMailboxes,
    Login,
    Plain,
    Search,
    Select,
    Status,
    Store,
    Tagged,
)
from mailcheck.imap.fetching import Client, FetchMessages
from mailcheck.imap.mailbox_names import (
    TRASH,
    ListedMailbox,
    MailboxName,
    NamePattern,
    decode_name,
    find_mailbox,
    list_mailboxes,
)
from mailcheck.imap.parsing import ALL_FLAGS
from mailcheck.imap.scanning import SequenceSet
from mailcheck.imap.searching import SearchMessages, saved_of, write_result
from mailcheck.imap.selected import Selected
from mailcheck.imap.writing import CRLF, write_flags, write_name, write_set
from mailcheck.operations.inbox.mailboxes import Mailboxes
from mailcheck.store.mailbox_store import MailboxStatus, Marks

CHARSETS = frozenset({"USASCII", "ASCII", "CSASCII", "UTF8", "CSUTF8"})
"""Charsets of SEARCH, without punctuation: programs write their names in several ways."""

_PUNCTUATION = re.compile(r"[^A-Z0-9]")
"""The charsets of search texts."""

ENABLED = frozenset({"CONDSTORE", "UTF8=ACCEPT", "IMAP4REV2"})
"""The extensions that change responses, and which ENABLE therefore names (RFC 9051 6.3.1)."""

HELO_NAME = "imap"
"""The name that an appended mail shows as that of its SMTP client."""


_KEEP_NUMBERS = frozenset({"FETCH", "STORE", "SEARCH"})
"""Commands with message numbers, during which none may change (RFC 9051 7.5.1)."""

_OWN_SYNC = frozenset({"NOOP", "CHECK", "EXPUNGE", "UID EXPUNGE", "MOVE", "UID MOVE"})
"""Commands that tell all changes themselves."""


class Refused(Exception):
    """A command is refused; the text is the response without its tag."""


class Session:
    """The session of a client that has logged in."""

    def __init__(self, client: Client, mailboxes: Mailboxes, caller: Caller) -> None:
        self._client = client
        self._mailboxes = mailboxes
        self._caller = caller
        self._selected: Selected | None = None
        self._enabled: set[str] = set()

    def __str__(self) -> str:
        """Return the account and the selected mailbox."""
        mailbox = "no mailbox" if self._selected is None else self._selected.mailbox.name
        return f"account {self._caller.account_id}, {mailbox}"

    # News.

    @property
    def has_news(self) -> bool:
        """Whether the selected mailbox may have changed since the client was told."""
        return self._selected is not None and self._selected.has_news

    def note_news(self) -> None:
        """Record that the inbox may have changed."""
        if self._selected is not None:
            self._selected.has_news = True

    async def sync_idle(self) -> None:
        """Tell a client that waits what has changed."""
        await self._sync(may_expunge=True)

    async def _tell_news(self, *, may_expunge: bool) -> None:
        """Send the changes after a command, which keeps its own outcome."""
        try:
            await self._sync(may_expunge=may_expunge)
        except StoreUnavailable:
            self.note_news()  # the next command tries again

    async def _sync(self, *, may_expunge: bool) -> None:
        selected = self._selected
        if selected is not None:
            responses = await selected.sync(
                self._mailboxes,
                self._caller,
                may_expunge=may_expunge,
                with_mod_sequence="CONDSTORE" in self._enabled,
            )
            self._client.send(b"".join(responses))

    # Commands.

    async def run(self, tagged: Tagged) -> bytes:
        """Run a command, send its responses, and return the last one without the tag."""
        command = tagged.command
        try:
            if isinstance(command, Plain):
                outcome = await _PLAIN[command.verb](self)
            elif isinstance(command, Search):
                outcome = await self._search(command, tagged.tag)
            else:
                outcome = await _COMMANDS[type(command)](self, command)
        except Refused as refusal:
            outcome = str(refusal)
        if self.has_news and tagged.verb not in _OWN_SYNC:
            await self._tell_news(may_expunge=tagged.verb not in _KEEP_NUMBERS)
        if outcome.startswith("OK"):
            outcome = f"{outcome} {tagged.verb} completed"
        return outcome.encode("ascii", "replace")

    @property
    def _is_utf_8(self) -> bool:
        return not self._enabled.isdisjoint({"UTF8=ACCEPT", "IMAP4REV2"})

    def _find(self, written: bytes) -> MailboxName:
        found = self._look_up(written)
        if found is None or not self._may_see(found):
            raise Refused("NO [NONEXISTENT] no mailbox has this name")
        return found

    def _decode(self, written: bytes) -> str | None:
        return decode_name(written, is_utf_8=self._is_utf_8)

    def _look_up(self, written: bytes) -> MailboxName | None:
        name = self._decode(written)
        return None if name is None else find_mailbox(name, self._mailboxes.caught)

    def _may_see(self, mailbox: MailboxName) -> bool:
        """Return whether LIST may show the mailbox: a limited key has its tags only."""
        rights, wanted = self._caller.rights, mailbox.wanted
        if rights.tags is None:
            return True
        return not wanted.foreign_to and (not wanted.tag or rights.allows_tag(wanted.tag))

    def _require_selected(self, *, to_change: bool = False) -> Selected:
        if self._selected is None:
            raise Refused("BAD select a mailbox first")
        if to_change and self._selected.is_read_only:
            raise Refused("NO [READ-ONLY] the mailbox was opened for reading only")
        return self._selected

    def _resolve(self, selected: Selected, numbers: SequenceSet, *, is_uid: bool) -> list[Position]:
        if not is_uid and not selected.has_all(numbers):
            raise Refused("BAD no message has this number")
        return selected.resolve(numbers, is_uid=is_uid)

    async def _noop(self) -> str:
        await self._sync(may_expunge=True)
        return "OK"

    async def _check(self) -> str:
        self._require_selected()
        return await self._noop()

    async def _namespace(self) -> str:
        self._client.send(b'* NAMESPACE (("" "/")) NIL NIL\r\n')
        return "OK"

    async def _already(self, command: object = None) -> str:
        raise Refused("BAD already logged in")

    async def _enable(self, command: Enable) -> str:
        """Enable extensions (RFC 9051 6.3.1)."""
        new = [
            capability
            for capability in dict.fromkeys(command.capabilities)
            if capability in ENABLED
        ]
        self._enabled.update(new)
        names = ["IMAP4rev2" if capability == "IMAP4REV2" else capability for capability in new]
        self._client.send(" ".join(["* ENABLED", *names]).encode("ascii") + CRLF)
        if "CONDSTORE" in new:
            self._tell_mod_sequence()
        return "OK"

    def _enable_condstore(self) -> None:
        """Enable CONDSTORE, since a command has used it (RFC 7162 3.1)."""
        if "CONDSTORE" not in self._enabled:
            self._enabled.add("CONDSTORE")
            self._tell_mod_sequence()

    def _tell_mod_sequence(self) -> None:
        if self._selected is not None:
            highest = self._selected.highest_mod_sequence
            self._client.send(b"* OK [HIGHESTMODSEQ %d] noted\r\n" % highest)

    # Mailboxes.

    async def _select(self, command: Select) -> str:
        """Open a mailbox (RFC 9051 6.3.2). The previous one is closed in any case."""
        if self._selected is not None:
            self._selected = None
            self._client.send(b"* OK [CLOSED] the previous mailbox is closed\r\n")
        mailbox = self._find(command.mailbox)
        if command.wants_condstore:
            self._enabled.add("CONDSTORE")
        keywords = await self._mailboxes.keywords(self._caller)
        state = await self._mailboxes.open(self._caller, mailbox.wanted)
        scopes = self._caller.rights.scopes
        may_write = scopes is None or Scope.INBOX_WRITE in scopes
        is_read_only = command.is_examine or not may_write
        selected = Selected(mailbox, state, is_read_only=is_read_only)
        known = {flag.lower() for flag in ALL_FLAGS}
        flags = frozenset(
            (*ALL_FLAGS, *(keyword for keyword in keywords if keyword.lower() not in known))
        )
        selected.keywords = flags
        lines = [b"* FLAGS " + write_flags(flags)]
        lines.append(b"* %d EXISTS" % len(selected))
        if "IMAP4REV2" not in self._enabled:
            lines.append(b"* 0 RECENT")
            lines += await self._first_unseen(selected)
        permanent = b"()" if is_read_only else write_flags((*flags, "\\*"))
        lines += [
            b"* OK [PERMANENTFLAGS " + permanent + b"] flags that are kept",
            b"* OK [UIDVALIDITY %d] UIDs are valid" % selected.uid_validity,
            b"* OK [UIDNEXT %d] predicted next UID" % selected.next_uid,
            b"* OK [HIGHESTMODSEQ %d] noted" % selected.highest_mod_sequence,
        ]
        if "IMAP4REV2" in self._enabled:
            name = write_name(mailbox.name, is_utf_8=True)
            lines.append(b'* LIST () "/" ' + name)
        self._client.send(CRLF.join(lines) + CRLF)
        self._selected = selected
        return "OK [READ-ONLY]" if is_read_only else "OK [READ-WRITE]"

    async def _first_unseen(self, selected: Selected) -> list[bytes]:
        """Return the number of the first unread message (RFC 3501 6.3.1)."""
        first = await self._mailboxes.first_unread(self._caller, selected.mailbox.wanted)
        number = None if first is None else selected.number_of(first)
        return [] if number is None else [b"* OK [UNSEEN %d] first unread message" % number]

    async def _change_mailbox(self, command: ChangeMailbox) -> str:
        """Refuse to change the mailboxes, which follow from the mail; accept subscriptions."""
        found = self._look_up(command.mailbox)
        if command.verb == "CREATE" and found is not None:
            if found.tag:
                raise Refused(
                    "NO [CANNOT] the mailbox of a tag is listed with its first message; "
                    "you can select it now"
                )
            raise Refused("NO [ALREADYEXISTS] the mailbox exists")
        if command.verb == "SUBSCRIBE" and found is not None:
            return "OK"
        if command.verb != "CREATE" and found is None:
            raise Refused("NO [NONEXISTENT] no mailbox has this name")
        raise Refused("NO [CANNOT] mailboxes are views of the inbox, and all are subscribed")

    async def _list(self, command: ListMailboxes) -> str:
        """List mailboxes (RFC 9051 6.3.9, RFC 5258, RFC 5819)."""
        verb = b"LSUB" if command.is_lsub else b"LIST"
        if command.patterns == (b"",) and not command.selection:
            # The separator alone.
            self._client.send(b'* %s (\\Noselect) "/" ""\r\n' % verb)
            return "OK"
        prefix = self._decode(command.reference) or ""
        patterns = [
            NamePattern(prefix + pattern)
            for pattern in map(self._decode, command.patterns)
            if pattern is not None
        ]
        tags = await self._mailboxes.tags(self._caller)
        has_sandbox = self._caller.rights.tags is None
        shows_subscribed = "SUBSCRIBED" in command.selection | command.wanted
        has_percent = any(b"%" in pattern for pattern in command.patterns)
        lines: list[bytes] = []
        for listed in list_mailboxes(tags, has_sandbox=has_sandbox):
            if not any(pattern.matches(listed.name) for pattern in patterns):
                continue
            if "SPECIAL-USE" in command.selection and "\\Trash" not in listed.attributes:
                continue
            # A parent without mail of its own is not subscribed, but all below it are.
            attributes, children = listed.attributes, b""
            if listed.can_be_selected:
                attributes += ("\\Subscribed",) if shows_subscribed else ()
            elif command.is_lsub and not has_percent:
                continue
            elif "SUBSCRIBED" in command.selection:
                if "RECURSIVEMATCH" not in command.selection:
                    continue
                children = b' ("CHILDINFO" ("SUBSCRIBED"))'
            name = write_name(listed.name, is_utf_8=self._is_utf_8)
            written = " ".join(attributes).encode("ascii")
            lines.append(b'* %s (%s) "/" %s%s\r\n' % (verb, written, name, children))
            if command.status and listed.can_be_selected:
                lines.append(await self._status_of(listed, command.status))
        await self._client.send_large(b"".join(lines))
        return "OK"

    async def _status_of(self, listed: ListedMailbox, items: tuple[str, ...]) -> bytes:
        mailbox = find_mailbox(listed.name, self._mailboxes.caught)
        if mailbox is None:
            return b""
        status = await self._mailboxes.status(self._caller, mailbox.wanted)
        return self._status_line(mailbox, items, status)

    async def _status(self, command: Status) -> str:
        mailbox = self._find(command.mailbox)
        if "HIGHESTMODSEQ" in command.items:
            self._enable_condstore()
        status = await self._mailboxes.status(self._caller, mailbox.wanted)
        self._client.send(self._status_line(mailbox, command.items, status))
        return "OK"

    def _status_line(
        self, mailbox: MailboxName, items: tuple[str, ...], status: MailboxStatus
    ) -> bytes:
        values = {
            "MESSAGES": status.message_count,
            "RECENT": 0,
            "UIDNEXT": status.last_position + 1,
            "UIDVALIDITY": status.uid_validity,
            "UNSEEN": status.unseen_count,
            "DELETED": status.deleted_count,
            "SIZE": status.byte_count,
            "HIGHESTMODSEQ": max(1, status.last_position),
        }
        written = " ".join(f"{item} {values[item]}" for item in items).encode("ascii")
        return b"* STATUS %s (%s)\r\n" % (
            write_name(mailbox.name, is_utf_8=self._is_utf_8),
            written,
        )

    async def _append(self, command: Append) -> str:
        """Store a mail as if it was received now (RFC 9051 6.3.12, UIDPLUS)."""
        mailbox = self._find(command.mailbox)
        if mailbox.tag is None:
            raise Refused("NO [CANNOT] mail can be appended to INBOX and to the mailbox of a tag")
        session = MailSession(self._client.client_ip, HELO_NAME, is_extended=True)
        uid_validity, uid = await self._mailboxes.append(
            self._caller, session, mailbox.tag, command.raw_message, command.flags
        )
        return f"OK [APPENDUID {uid_validity} {uid}]"

    # Messages.

    async def _close(self) -> str:
        """Delete what is marked as deleted, and close the mailbox (RFC 9051 6.4.1)."""
        selected = self._require_selected()
        if not selected.is_read_only:
            deleted = await self._mailboxes.deleted(self._caller, selected.mailbox.wanted)
            await self._mailboxes.delete(self._caller, _known(selected, deleted))
        self._selected = None
        return "OK"

    async def _unselect(self) -> str:
        self._require_selected()
        self._selected = None
        return "OK"

    async def _expunge(self, command: Expunge) -> str:
        """Delete what is marked as deleted (RFC 9051 6.4.3 and 6.4.9)."""
        selected = self._require_selected(to_change=True)
        deleted = await self._mailboxes.deleted(self._caller, selected.mailbox.wanted)
        uids = _known(selected, deleted)
        if command.is_uid:
            chosen = set(selected.resolve(command.uids, is_uid=True))
            uids = [uid for uid in uids if uid in chosen]
        return await self._delete(selected, uids)

    async def _delete(self, selected: Selected, uids: list[Position]) -> str:
        await self._mailboxes.delete(self._caller, uids)
        await self._client.send_large(b"".join(selected.forget(uids)))
        await self._tell_news(may_expunge=True)
        return "OK"

    async def _search(self, command: Search, tag: bytes) -> str:
        selected = self._require_selected()
        if command.has_mod_sequence:
            self._enable_condstore()
        uids: list[Position] = []
        try:
            if _PUNCTUATION.sub("", command.charset) not in CHARSETS:
                raise Refused("NO [BADCHARSET (US-ASCII UTF-8)] send the text in UTF-8")
            messages = SearchMessages(self._mailboxes, self._caller, selected)
            found = await messages.run(command)
            mod_sequence = await messages.mod_sequence(command, found)
            uids = found
        finally:
            # A search that fails leaves an empty saved result (RFC 9051 6.4.4.1).
            saved = saved_of(command, uids)
            if saved is not None:
                selected.saved = saved
        is_extended = "IMAP4REV2" in self._enabled
        await self._client.send_large(
            write_result(command, tag, selected, uids, mod_sequence, is_extended=is_extended)
        )
        return "OK"

    async def _fetch(self, command: Fetch) -> str:
        selected = self._require_selected()
        if "MODSEQ" in command.attributes:
            self._enable_condstore()
        uids = self._resolve(selected, command.numbers, is_uid=command.is_uid)
        fetch = FetchMessages(
            self._mailboxes,
            self._caller,
            selected,
            command,
            self._client,
            with_mod_sequence="CONDSTORE" in self._enabled,
        )
        await fetch.run(uids)
        return "OK"

    async def _store(self, command: Store) -> str:
        """Change flags (RFC 9051 6.4.6, RFC 7162 3.1.3)."""
        selected = self._require_selected(to_change=True)
        if command.unchanged_since is not None:
            self._enable_condstore()
        uids = self._resolve(selected, command.numbers, is_uid=command.is_uid)
        result = await self._mailboxes.mark(
            self._caller, uids, command.marking, command.flags, command.unchanged_since
        )
        selected.note_own(result.marked)
        self._tell_keywords(selected, result.marked)
        has_condstore = "CONDSTORE" in self._enabled
        if has_condstore or not command.is_silent:
            responses = [
                line
                for marks in result.marked
                for line in selected.write_marks(
                    marks,
                    with_mod_sequence=has_condstore,
                    with_flags=not command.is_silent,
                    with_uid=command.is_uid,
                )
            ]
            await self._client.send_large(b"".join(responses))
        if result.modified:
            numbers = [
                uid if command.is_uid else selected.number_of(uid) or 0 for uid in result.modified
            ]
            return f"OK [MODIFIED {write_set(numbers).decode('ascii')}]"
        return "OK"

    def _tell_keywords(self, selected: Selected, marked: Sequence[Marks]) -> None:
        """Send the flags of the mailbox if there is a new keyword (RFC 9051 7.3.5)."""
        known = {keyword.lower() for keyword in selected.keywords}
        new = {flag.lower(): flag for marks in marked for flag in marks.all_flags}
        if not known.issuperset(new):
            selected.keywords |= {value for key, value in new.items() if key not in known}
            self._client.send(b"* FLAGS " + write_flags(selected.keywords) + CRLF)

    async def _copy(self, command: Copy) -> str:
        """Refuse to copy; moving to the trash deletes (RFC 9051 6.4.7 and 6.4.8)."""
        selected = self._require_selected(to_change=command.is_move)
        mailbox = self._find(command.mailbox)
        if not command.is_move:
            raise Refused("NO [CANNOT] a message is in the mailboxes of its tag and recipient only")
        if mailbox.name != TRASH:
            raise Refused("NO [CANNOT] messages can be moved to Trash only, which deletes them")
        uids = self._resolve(selected, command.numbers, is_uid=command.is_uid)
        return await self._delete(selected, uids)


def _known(selected: Selected, uids: list[Position]) -> list[Position]:
    """Return the UIDs that the client knows."""
    return [uid for uid in uids if selected.number_of(uid) is not None]


_PLAIN: Mapping[str, Callable[[Session], Awaitable[str]]] = {
    "NOOP": Session._noop,
    "STARTTLS": Session._already,
    "CHECK": Session._check,
    "NAMESPACE": Session._namespace,
    "CLOSE": Session._close,
    "UNSELECT": Session._unselect,
}
_COMMANDS: Mapping[type, Callable[[Session, Any], Awaitable[str]]] = {
    Login: Session._already,
    Authenticate: Session._already,
    Enable: Session._enable,
    Select: Session._select,
    ChangeMailbox: Session._change_mailbox,
    ListMailboxes: Session._list,
    Status: Session._status,
    Append: Session._append,
    Expunge: Session._expunge,
    Fetch: Session._fetch,
    Store: Session._store,
    Copy: Session._copy,
}
