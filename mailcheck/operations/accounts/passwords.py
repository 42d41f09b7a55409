"""Password hashing with scrypt (RFC 7914), in a worker process and not in the reactor."""

import base64
import hashlib
import hmac
import re
import unicodedata
from functools import partial
from typing import TypeVar

from msgspec import Struct
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from mailcheck.core.errors import InvalidParameter, Overloaded
from mailcheck.core.identifiers import RandomBytes
from mailcheck.operations.semaphores import FairSemaphore, NoPermit
from mailcheck.ports.workers import Worker

SHORTEST_PASSWORD, LONGEST_PASSWORD = 10, 200
"""Minimum and maximum length of a password in characters. NIST SP 800-63B 5.1.1 asks for at
least 8, and for no rules about the kinds of characters."""

MAX_UNDER_WAY = 16
"""Maximum number of concurrent hashes. Each needs 32 MiB and at least a tenth of a second."""

OF_CLIENT = 4
"""Maximum number of concurrent hashes per client. Further hashes of the client wait."""

WAITING = 200
"""Maximum number of waiting hashes. When it is reached, the client with the most waiting hashes
loses one."""

PATIENCE = 10.0
"""Seconds that a hash waits for its turn. Browsers and people wait longer than that."""

BLOCK_SIZE, PASSES = 8, 3
"""The scrypt parameters r and p (OWASP Password Storage Cheat Sheet, with N = 2**15)."""

Result = TypeVar("Result")

HASH_LENGTH = SALT_LENGTH = 16

_WRITTEN = re.compile(
    r"\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]+)"
)


class ScryptCost(Struct, frozen=True):
    """The cost parameters of scrypt. N is ``2 ** log_n``."""

    log_n: int
    r: int = BLOCK_SIZE
    p: int = PASSES

    def derive(self, password: str, salt: bytes) -> bytes:
        """Derive the key, with 128 * r * N bytes of memory and p passes over it."""
        return hashlib.scrypt(
            password.encode("utf-8", "surrogatepass"),
            salt=salt,
            n=1 << self.log_n,
            r=self.r,
            p=self.p,
            maxmem=256 * self.r * ((1 << self.log_n) + self.p),
            dklen=HASH_LENGTH,
        )


RANDOM_COST = ScryptCost(10, BLOCK_SIZE, 1)
"""Cost for generated passwords. Their 80 random bits cannot be guessed at any cost, and each
start of a daemon verifies whether the generated first password is still in use."""


def write_hash(password: str, salt: bytes, cost: ScryptCost) -> str:
    """Hash a password. The result contains the cost and the salt (PHC string format)."""
    words = (base64.b64encode(data).decode("ascii") for data in (salt, cost.derive(password, salt)))
    return f"$scrypt$ln={cost.log_n},r={cost.r},p={cost.p}$" + "$".join(words)


def is_password(password: str, written: str) -> bool:
    """Return whether a password matches a hash, in constant time.

    :raises ValueError: ``written`` is not a hash by `write_hash`.
    """
    cost, salt, kept = _read_hash(written)
    return hmac.compare_digest(cost.derive(password, salt), kept)


def _read_hash(written: str) -> tuple[ScryptCost, bytes, bytes]:
    match = _WRITTEN.fullmatch(written)
    if match is None:
        raise ValueError("not a password hash")
    log_n, r, p = (int(match[number]) for number in (1, 2, 3))
    return ScryptCost(log_n, r, p), base64.b64decode(match[4]), base64.b64decode(match[5])


def require_strong(password: str, name: str) -> None:
    """Reject a password that is too easy to guess.

    :raises InvalidParameter: the message says what is wrong with the password.
    """
    if len(password) < SHORTEST_PASSWORD:
        problem = f"the password needs at least {SHORTEST_PASSWORD} characters"
    elif len(password) > LONGEST_PASSWORD:
        problem = f"the password has at most {LONGEST_PASSWORD} characters"
    elif any(unicodedata.category(character) == "Cc" for character in password):
        # RFC 8265 4.2.2. HMAC pads keys with NUL, so those at the end would not count.
        problem = "the password contains a control character"
    elif password.casefold() == name.casefold() or len(set(password)) < 4:
        problem = "this password is too easy to guess; choose another one"
    else:
        return
    raise InvalidParameter("password", problem)


class PasswordHasher:
    """Hashes and verifies passwords in a separate worker, fairly among clients.

    ``client`` is the address of the browser, or empty for a command.
    """

    def __init__(
        self,
        worker: Worker,
        cost: ScryptCost,
        random_bytes: RandomBytes,
        clock: IReactorTime,
    ) -> None:
        self._worker = worker
        self._cost = cost
        self._random_bytes = random_bytes
        self._semaphore: FairSemaphore[str] = FairSemaphore(
            clock, limit=MAX_UNDER_WAY, per_owner=OF_CLIENT, max_waiting=WAITING
        )
        # Verified when there is no hash, so that unknown names take as long as known ones.
        salt, key = bytes(SALT_LENGTH), bytes(HASH_LENGTH)
        words = (base64.b64encode(data).decode("ascii") for data in (salt, key))
        self._nobody = f"$scrypt$ln={cost.log_n},r={cost.r},p={cost.p}$" + "$".join(words)

    async def write(self, password: str, client: str = "") -> str:
        """Hash a password at the current cost.

        :raises Overloaded: too many passwords are being hashed.
        """
        salt = self._random_bytes(SALT_LENGTH)
        return await self._run(partial(write_hash, _normal(password), salt, self._cost), client)

    async def write_random(self, password: str) -> str:
        """Hash a generated random password.

        :raises Overloaded: too many passwords are being hashed.
        """
        salt = self._random_bytes(SALT_LENGTH)
        return await self._run(partial(write_hash, password, salt, RANDOM_COST), "")

    async def matches(self, password: str, written: str | None, client: str = "") -> bool:
        """Return whether a password matches a hash. A missing hash takes equally long.

        :raises Overloaded: too many passwords are being hashed.
        """
        too_long = len(password) > LONGEST_PASSWORD
        given = "" if too_long else _normal(password)
        found = await self._run(partial(is_password, given, written or self._nobody), client)
        if written is not None and not found and _read_hash(written)[0] == RANDOM_COST:
            # Make a wrong password take as long as for any other account.
            await self._run(partial(is_password, given, self._nobody), client)
        return found and written is not None and not too_long

    def is_outdated(self, written: str) -> bool:
        """Return whether a hash was made with another cost than the current one."""
        return _read_hash(written)[0] not in (self._cost, RANDOM_COST)

    async def _run(self, work: partial[Result], client: str) -> Result:
        try:
            await self._semaphore.acquire(client, PATIENCE)
        except NoPermit as failure:
            whose = "from your address" if failure.is_owner_limit else "right now"
            raise Overloaded(
                f"too many people are signing in {whose}; try again in a moment"
            ) from None
        # A disconnected client drops the result, but the work continues and keeps its permit.
        answer: Deferred[Result] = Deferred()

        def end(result: Result | Failure) -> None:
            self._semaphore.release(client)
            if not answer.called:
                answer.callback(result)

        self._worker.run(work).addBoth(end)
        return await answer


def _normal(password: str) -> str:
    """Normalise the Unicode form of a password (RFC 8265 4.2.1)."""
    return unicodedata.normalize("NFC", password)
