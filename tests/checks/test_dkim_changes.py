"""The patches of dkimpy are still needed, and every process that verifies has them.

Each test shows dkimpy itself. If a test fails with a new version, dkimpy has fixed the problem:
then remove our function from `patch_dkimpy`, or the workaround from `dkimpy_verify`.
"""

import base64
import hashlib
import importlib.util
import inspect
import os
from collections.abc import Callable
from functools import cache, partial
from types import ModuleType
from typing import Any

import dkim  # type: ignore[import-untyped]
import dkim.canonicalization  # type: ignore[import-untyped]
import pytest
import pytest_twisted
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key
from dkim.crypto import (  # type: ignore[import-untyped]
    RSASSA_PKCS1_v1_5_sign,
    RSASSA_PKCS1_v1_5_verify,
    parse_private_key,
)
from twisted.internet.defer import maybeDeferred

from mailcheck.assembly.workers import daemon_workers, direct_analysis_worker
from mailcheck.checks.dkim import dkimpy_verify
from mailcheck.core.errors import WorkerDied
from mailcheck.core.memory.client_limits import AMPLE
from tests.fakes.mail_signer import RSA
from tests.table import rows


@cache
def untouched(name: str) -> ModuleType:
    """Import a module of dkimpy again, without our patches."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CAUSES = [
    # In a run of blanks without a CRLF at its end, each blank starts another attempt.
    ("strip_trailing_whitespace", r'return re.sub(b"[\t ]+\r\n", b"\r\n", content)'),
    # One match for each blank between two words, and for each line end.
    ("compress_whitespace", r'return re.sub(b"[\t ]+", b" ", content)'),
    ("unfold_header_value", r'return re.sub(b"\r?\n", b"", content)'),
]


@rows(*CAUSES)
def test_dkimpy_reads_blanks_with_slow_expressions(name: str, cause: str) -> None:
    """The expressions of dkimpy take quadratic time, or match each blank separately."""
    body = inspect.getsource(getattr(untouched("dkim.canonicalization"), name))
    assert cause in body


def test_dkimpy_tries_a_signature_again_from_each_blank() -> None:
    """The expression for b= may start at each blank of a fold, which takes quadratic time."""
    fws = rb"(?:(?:\s*\r?\n)?\s+)?"
    assert untouched("dkim").RE_BTAG.pattern.startswith(rb"([;\s]b" + fws + rb"=)(?:" + fws)


class Counted(bytes):
    """A body that counts how often its end is checked."""

    looks = 0

    def endswith(self, *arguments: Any) -> bool:
        """Count the call and check the end."""
        self.looks += 1
        return super().endswith(*arguments)


def test_dkimpy_takes_empty_lines_away_one_by_one() -> None:
    """Dkimpy checks the end of a body once for each empty line there."""
    theirs, ours = Counted(b"x" + b"\r\n" * 500), Counted(b"x" + b"\r\n" * 500)
    untouched("dkim.canonicalization").strip_trailing_lines(theirs)
    dkimpy_verify.strip_trailing_lines(ours)
    assert theirs.looks > 500
    assert ours.looks == 1


class WatchedField(tuple[bytes, bytes]):
    """A field that counts how often any field is read."""

    reads = 0

    def __getitem__(self, index: Any) -> Any:
        """Count the access and return the item."""
        WatchedField.reads += 1
        return super().__getitem__(index)


def reads_of(work: Callable[[list[Any]], object], count: int) -> int:
    """Return how often fields are read, for ``count`` fields with different names."""
    WatchedField.reads = 0
    work([WatchedField((b"x-%d" % number, b" y\r\n")) for number in range(count)])
    return WatchedField.reads


def test_dkimpy_selects_fields_in_quadratic_time() -> None:
    """Dkimpy searches all fields from the end for each signed name."""

    def select(select_headers: Any, fields: list[Any]) -> object:
        return select_headers(fields, [b"x-%d" % number for number in range(len(fields))])

    theirs = partial(select, untouched("dkim").select_headers)
    ours = partial(select, dkimpy_verify.select_headers)
    assert reads_of(theirs, 400) > 3 * reads_of(theirs, 200)
    assert reads_of(ours, 400) <= 2 * reads_of(ours, 200)


def test_dkimpy_canonicalizes_fields_that_are_not_signed() -> None:
    """Dkimpy canonicalizes all fields that it gets; our adapter passes only the signed ones."""
    verifier = dkim.DKIM()
    verifier.ktag, verifier.seqtlsrpt, verifier.headers = b"none", False, []

    def verify(fields: list[Any]) -> object:
        verifier.headers = fields
        tags = {b"a": b"rsa-sha256", b"b": b""}
        return verifier.verify_sig_process(
            tags | {b"c": b"relaxed/relaxed"}, [b"from"], (b"dkim-signature", b" b=\r\n"), None
        )

    with pytest.raises(dkim.UnknownKeyTypeError):
        reads_of(verify, 50)
    assert WatchedField.reads >= 100


def test_dkimpy_verifies_signatures_of_a_wrong_length() -> None:
    """Dkimpy verifies a signature with an extra zero, which is invalid (RFC 8017 8.2.2)."""
    public = load_der_public_key(base64.b64decode(RSA.public))
    assert isinstance(public, RSAPublicKey)
    numbers = public.public_numbers()
    signed = RSASSA_PKCS1_v1_5_sign(
        hashlib.sha256(b"text"), parse_private_key(base64.b64decode(RSA.private))
    )
    key = {"modulus": numbers.n, "publicExponent": numbers.e}
    assert RSASSA_PKCS1_v1_5_verify(hashlib.sha256(b"text"), b"\0" + signed, key)


def test_dkimpy_signs_one_more_from_field_than_is_named() -> None:
    """Dkimpy adds a From field to the signed ones (h=), which detects a From field added on top."""
    names = [b"from"]
    verifier = dkim.DKIM()
    verifier.ktag, verifier.seqtlsrpt, verifier.headers = b"none", False, []
    with pytest.raises(dkim.UnknownKeyTypeError):
        verifier.verify_sig_process(
            {b"a": b"rsa-sha256", b"b": b""}, names, (b"dkim-signature", b" b=\r\n"), None
        )
    assert names == [b"from", b"from"]


def test_dkimpy_loads_a_resolver() -> None:
    """Dkimpy loads a resolver on import, so only processes that verify import it."""
    assert "import dns.resolver" in inspect.getsource(untouched("dkim.dnsplug"))


def test_dkimpy_leaves_blanks_behind_a_signature() -> None:
    """Dkimpy keeps white space after the value of b=, which must be removed (RFC 6376 3.5)."""
    body = b" v=1; b=AbC= \t; d=b.example"
    assert dkimpy_verify.remove_signature(body) == b" v=1; b=; d=b.example"
    assert untouched("dkim").RE_BTAG.sub(b"\\1", body) == b" v=1; b= \t; d=b.example"


# For a process without the tests: the modules of the functions in its dkimpy.
WHERE_FUNCTIONS_ARE = """{function.__module__ for dkim in [__import__("dkim.canonicalization")]
    for parts in [dkim.canonicalization]
    for function in [parts.compress_whitespace, parts.strip_trailing_lines,
        parts.unfold_header_value, parts.Relaxed.canonicalize_body, dkim.hash_headers]}"""


@pytest_twisted.ensureDeferred
async def test_every_process_that_verifies_has_the_changes() -> None:
    """The daemon's analysis process, its replacement, and the commands have the patches."""
    from twisted.internet import reactor

    ours = {dkimpy_verify.__name__}
    workers = daemon_workers(reactor, AMPLE, is_shared=False)
    try:
        for _ in range(2):
            assert await workers.analysis.run(partial(eval, WHERE_FUNCTIONS_ARE)) == ours
            with pytest.raises(WorkerDied):
                await workers.analysis.run(partial(os._exit, 1))
    finally:
        for worker in workers.beside_store:
            await maybeDeferred(worker.stop)
    assert await direct_analysis_worker().run(partial(eval, WHERE_FUNCTIONS_ARE)) == ours
