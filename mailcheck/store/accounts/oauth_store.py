"""The store of OAuth clients, codes and tokens. Secrets are stored as digests only."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.core.accounts import ApiKey
from mailcheck.core.audit import Action, AuditEntry
from mailcheck.core.identifiers import KeyId
from mailcheck.core.instants import Instant
from mailcheck.core.oauth.clients import Client, ClientSource
from mailcheck.core.oauth.grants import (
    MAX_PAIRS,
    REUSE_WINDOW,
    AuthorizationCode,
    NewTokens,
    Redemption,
)
from mailcheck.ports.engine import Row, Transaction
from mailcheck.store.accounts.audit_store import write_entry
from mailcheck.store.accounts.key_store import IS_GRANTED, KEY_COLUMNS, KnownKey, revoke
from mailcheck.store.transactions import (
    Store,
    columns_of,
    delete_first,
    insert,
    read,
    read_number,
    read_value,
    read_values,
    row_of,
    value_of,
    write,
)

_CLIENT_COLUMNS = columns_of(Client, "oauth_client", "has_secret")


class KnownClient(Struct, frozen=True):
    """A client, and the digest of its secret, if it has one."""

    client: Client
    secret_digest: bytes | None


class KnownToken(Struct, frozen=True):
    """The grant of an access token, and when the token expires.

    ``is_granted`` is whether the person who has granted it may still do so.
    """

    known: KnownKey
    expires_at: Instant
    is_granted: bool


class OAuthStore(Store):
    """Clients, codes and tokens."""

    @write
    def add_client(
        self,
        transaction: Transaction,
        client: Client,
        secret_digest: bytes | None,
        maximum: int,
        entry: AuditEntry | None,
    ) -> None:
        """Add a client, and delete expired ones.

        :param entry: `None` for a client that registers itself, which gives it no access.

        If ``maximum`` clients have registered themselves, the oldest clients without a grant are
        deleted to make room for another one.
        """
        now = client.created_at
        transaction.execute("DELETE FROM oauth_client WHERE expires_at <= ?", (now,))
        if client.source is ClientSource.REGISTRATION:
            _make_room(transaction, maximum)
        row = row_of(client, "has_secret", secret_digest=secret_digest)
        insert(transaction, "oauth_client", [row])
        if entry is not None:
            write_entry(transaction, entry)

    @read
    def find_client(
        self, transaction: Transaction, client_id: str, now: Instant
    ) -> KnownClient | None:
        """Return a client that has not expired, or `None`."""
        row = transaction.row(
            f"SELECT {_CLIENT_COLUMNS}, secret_digest FROM oauth_client "
            "WHERE id = ? AND (expires_at IS NULL OR expires_at > ?)",
            (client_id, now),
        )
        if row is None:
            return None
        digest = None if row.secret_digest is None else bytes(row.secret_digest)
        return KnownClient(_client_of(row), digest)

    @read
    def list_clients(self, transaction: Transaction, now: Instant) -> list[Client]:
        """Return the clients that have not expired, oldest first."""
        rows = transaction.rows(
            f"SELECT {_CLIENT_COLUMNS}, secret_digest FROM oauth_client "
            "WHERE expires_at IS NULL OR expires_at > ? ORDER BY created_at, id",
            (now,),
        )
        return list(map(_client_of, rows))

    @write
    def delete_client(
        self, transaction: Transaction, client_id: str, entry: AuditEntry
    ) -> list[ApiKey] | None:
        """Delete a client and revoke its grants; return them, or `None` without such a client."""
        if not transaction.execute("DELETE FROM oauth_client WHERE id = ?", (client_id,)):
            return None
        transaction.execute("DELETE FROM oauth_code WHERE client_id = ?", (client_id,))
        revoked = read_values(
            transaction,
            ApiKey,
            "UPDATE api_key SET revoked_at = ? WHERE client_id = ? AND revoked_at IS NULL "
            f"RETURNING {KEY_COLUMNS}",
            (entry.happened_at, client_id),
        )
        write_entry(transaction, entry)
        _note_revoked(transaction, entry, revoked)
        return revoked

    @write
    def add_code(
        self, transaction: Transaction, digest: bytes, code: AuthorizationCode, now: Instant
    ) -> None:
        """Add a code, and delete expired ones."""
        transaction.execute("DELETE FROM oauth_code WHERE expires_at <= ?", (now,))
        insert(transaction, "oauth_code", [row_of(code, digest=digest)])

    @write
    def redeem_code(
        self,
        transaction: Transaction,
        digest: bytes,
        grant: ApiKey,
        key_digest: bytes,
        redirect_uri: str,
        challenge: str,
        tokens: NewTokens,
        maximum: int,
        entry: AuditEntry,
    ) -> Redemption:
        """Use a code up, and store the grant and its first tokens.

        A code is used up by any attempt. A second attempt revokes the grant of the first one.

        :param grant: the grant without its account, name and scopes, which the code determines.
        :param redirect_uri: the one of the request for tokens; empty if it has none.
        :param maximum: number of valid keys that an account may have.
        """
        row = transaction.row(
            f"SELECT {columns_of(AuthorizationCode, 'oauth_code')}, key_id "
            "FROM oauth_code WHERE digest = ?",
            (digest,),
        )
        if row is None:
            return Redemption(problem="the code is unknown or has expired")
        now = grant.created_at
        if not transaction.execute(
            "UPDATE oauth_code SET key_id = ? WHERE digest = ? AND key_id IS NULL",
            (grant.id, digest),
        ):
            used = transaction.row("SELECT key_id FROM oauth_code WHERE digest = ?", (digest,))
            problem = "the code was used before"
            revoked = None if used is None else used.key_id
            return _end_stolen(transaction, revoked, problem, entry)
        code = value_of(AuthorizationCode, row)
        if code.expires_at <= now:
            return Redemption(problem="the code is unknown or has expired")
        if code.client_id != grant.client_id:
            return Redemption(problem="the code belongs to another client")
        if redirect_uri not in ("", code.redirect_uri):
            return Redemption(problem="the redirect_uri is not that of the authorization request")
        if code.challenge != challenge:
            return Redemption(problem="the code_verifier does not match the code_challenge")
        if _is_full(transaction, code, now, maximum):
            return Redemption(problem=f"the account has {maximum} keys: revoke one first")
        grant = replace(
            grant,
            account_id=code.account_id,
            granted_by=code.granted_by,
            name=code.client_name,
            scopes=code.scopes,
        )
        insert(transaction, "api_key", [row_of(grant, digest=key_digest)])
        _add_tokens(transaction, grant.id, tokens, now)
        detail = f"{grant.id} {grant.name!r} for the client {grant.client_id}, {grant.rights}"
        write_entry(transaction, replace(entry, account_id=grant.account_id, detail=detail))
        ended = [revoke(transaction, KeyId(word), now) for word in code.replaces.split()]
        replaced = [key for key in ended if key is not None]
        _note_revoked(transaction, entry, replaced, f": replaced by {grant.id}")
        return Redemption(grant)

    @write
    def redeem_refresh_token(
        self,
        transaction: Transaction,
        digest: bytes,
        client_id: str,
        tokens: NewTokens,
        entry: AuditEntry,
    ) -> Redemption:
        """Exchange a refresh token for the next tokens of its grant.

        A token that was exchanged a short time ago is exchanged again, if the grant has few pairs.
        A later use, or a use by another client, revokes the grant.
        """
        now = entry.happened_at
        # The row of the grant is the lock of its tokens.
        locked = transaction.locked_rows(
            "SELECT id FROM api_key WHERE id = "
            "(SELECT key_id FROM oauth_token WHERE digest = ? AND is_refresh = 1)",
            (digest,),
            "api_key",
        )
        row = transaction.row(
            f"SELECT {KEY_COLUMNS}, oauth_token.expires_at AS token_expires_at, "
            f"oauth_token.used_at, account.disabled_at, {IS_GRANTED} AS is_granted "
            "FROM oauth_token JOIN api_key ON api_key.id = oauth_token.key_id "
            "JOIN account ON account.id = api_key.account_id "
            "WHERE oauth_token.digest = ? AND oauth_token.is_refresh = 1",
            (digest,),
        )
        if not locked or row is None:
            return Redemption(problem="the refresh token is unknown or has expired")
        key = value_of(ApiKey, row)
        if key.client_id != client_id:
            problem = "the token belongs to another client"
            return _end_stolen(transaction, key.id, problem, entry)
        if row.used_at is not None and now - row.used_at > REUSE_WINDOW:
            problem = "the refresh token was used before: sign in again"
            return _end_stolen(transaction, key.id, problem, entry)
        if key.revoked_at is not None or row.disabled_at is not None or not row.is_granted:
            return Redemption(problem="the access was revoked")
        if row.token_expires_at <= now or key.is_expired(now):
            return Redemption(problem="the refresh token is unknown or has expired")
        if row.used_at is None:
            transaction.execute(
                "UPDATE oauth_token SET used_at = ? WHERE digest = ?", (now, digest)
            )
        elif not _make_room_for_pair(transaction, key.id, tokens, now):
            return Redemption(
                problem=f"the refresh token was just used {MAX_PAIRS} times: use its latest answer"
            )
        transaction.execute(
            "UPDATE api_key SET expires_at = ? WHERE id = ?", (tokens.refresh_until, key.id)
        )
        _add_tokens(transaction, key.id, tokens, now)
        return Redemption(
            replace(key, expires_at=tokens.refresh_until), is_repeated=row.used_at is not None
        )

    @write
    def keep_client(self, transaction: Transaction, client_id: str, until: Instant) -> None:
        """Let a client that expires expire later."""
        transaction.execute(
            "UPDATE oauth_client SET expires_at = ? WHERE id = ? AND expires_at < ?",
            (until, client_id, until),
        )

    @read
    def find_access(self, transaction: Transaction, digest: bytes) -> KnownToken | None:
        """Return the grant of an access token, even if it is revoked, or `None`."""
        row = transaction.row(
            f"SELECT {KEY_COLUMNS}, oauth_token.expires_at AS token_expires_at, "
            f"last_position, disabled_at, {IS_GRANTED} AS is_granted FROM oauth_token "
            "JOIN api_key ON api_key.id = oauth_token.key_id "
            "JOIN inbox ON inbox.account_id = api_key.account_id "
            "JOIN account ON account.id = api_key.account_id "
            "WHERE oauth_token.digest = ? AND oauth_token.is_refresh = 0",
            (digest,),
        )
        if row is None:
            return None
        known = KnownKey(value_of(ApiKey, row), row.last_position, row.disabled_at is not None)
        return KnownToken(known, row.token_expires_at, bool(row.is_granted))

    @read
    def grant_of(self, transaction: Transaction, digest: bytes) -> ApiKey | None:
        """Return the grant of an access token or of a refresh token, or `None`."""
        sql = (
            f"SELECT {KEY_COLUMNS} FROM oauth_token JOIN api_key ON api_key.id = key_id "
            "WHERE oauth_token.digest = ?"
        )
        return read_value(transaction, ApiKey, sql, (digest,))


def _make_room(transaction: Transaction, maximum: int) -> None:
    sql = "SELECT COUNT(*) FROM oauth_client WHERE source = ?"
    count = read_number(transaction, sql, (ClientSource.REGISTRATION,))
    if count >= maximum:
        oldest = (
            "source = ? AND NOT EXISTS "
            "(SELECT 1 FROM api_key WHERE api_key.client_id = oauth_client.id) "
            "ORDER BY created_at, id"
        )
        sql = delete_first("oauth_client", "id", oldest)
        transaction.execute(sql, (ClientSource.REGISTRATION, count - maximum + 1))


def _make_room_for_pair(
    transaction: Transaction, key_id: KeyId, tokens: NewTokens, now: Instant
) -> bool:
    """Return whether a grant may have one more pair of tokens.

    At the maximum, the oldest pair makes room, unless it was issued within the window. Otherwise
    answers that were lost long ago would fill the places.
    """
    live = transaction.rows(
        "SELECT digest, expires_at FROM oauth_token WHERE key_id = ? AND is_refresh = 1 "
        "AND used_at IS NULL AND expires_at > ? ORDER BY expires_at, digest",
        (key_id, now),
    )
    if len(live) < MAX_PAIRS:
        return True
    # All refresh tokens last equally long.
    if live[0].expires_at >= tokens.refresh_until - REUSE_WINDOW:
        return False
    transaction.execute("DELETE FROM oauth_token WHERE digest = ?", (bytes(live[0].digest),))
    return True


def _client_of(row: Row) -> Client:
    return value_of(Client, row, has_secret=row.secret_digest is not None)


def _is_full(transaction: Transaction, code: AuthorizationCode, now: Instant, maximum: int) -> bool:
    valid = transaction.rows(
        "SELECT id FROM api_key WHERE account_id = ? AND revoked_at IS NULL "
        "AND (expires_at IS NULL OR expires_at > ?)",
        (code.account_id, now),
    )
    replaced = code.replaces.split()
    return sum(key.id not in replaced for key in valid) >= maximum


def _add_tokens(transaction: Transaction, key_id: KeyId, tokens: NewTokens, now: Instant) -> None:
    """Add a pair of tokens, and delete the expired ones of all grants."""
    transaction.execute("DELETE FROM oauth_token WHERE expires_at <= ?", (now,))
    pair = (
        (tokens.access_digest, 0, tokens.access_until),
        (tokens.refresh_digest, 1, tokens.refresh_until),
    )
    insert(
        transaction,
        "oauth_token",
        [
            {"digest": digest, "key_id": key_id, "is_refresh": is_refresh, "expires_at": until}
            for digest, is_refresh, until in pair
        ],
    )


def _end_stolen(
    transaction: Transaction, key_id: KeyId | None, problem: str, entry: AuditEntry
) -> Redemption:
    """Revoke the grant of a secret that somebody else may have."""
    key = None if key_id is None else revoke(transaction, key_id, entry.happened_at)
    if key is not None:
        _note_revoked(transaction, entry, [key], f": {problem}")
    return Redemption(problem=problem, revoked=key)


def _note_revoked(
    transaction: Transaction, entry: AuditEntry, keys: Sequence[ApiKey], why: str = ""
) -> None:
    for number, key in enumerate(keys, 1):
        detail = f"{key.id} {key.name!r}{why}"
        write_entry(
            transaction, entry.followed_by(number, Action.KEY_REVOKED, key.account_id, detail)
        )
