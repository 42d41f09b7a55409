"""A client for rspamd: the mail is the body of ``POST /checkv2``.

rspamd reads the address of the client, its name and the envelope sender from the trace fields with
which a mail begins (`with_trace_fields`), as long as no HTTP header of the request names them.
"""

from functools import cached_property
from typing import Any

from treq.content import collect
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectError, DNSLookupError
from twisted.web.client import Agent, ResponseNeverReceived
from twisted.web.http_headers import Headers
from twisted.web.iweb import IResponse

from mailcheck.checks.content.limits import KIB
from mailcheck.checks.deliverability.content_filter import (
    FilterProblem,
    FilterVerdict,
    ReportUnreadable,
)
from mailcheck.checks.deliverability.rspamd import Skipped, read_rspamd_verdict
from mailcheck.ports.probes import FilterFailed
from mailcheck.probes.fetching import USER_AGENT, BytesBody, bounded
from mailcheck.probes.trust import FindTrust, VerifiedHosts

CONNECT_SECONDS = 5.0
"""Seconds for connecting. An rspamd is nearby, so a slower one counts as unreachable."""

ANSWER_SECONDS = 30.0
"""Seconds for connecting, filtering and answering. rspamd itself gives up after 8 s by default."""

MAX_ANSWER = 256 * KIB
"""Maximum size of an answer in octets. An answer with a hundred symbols has 15 KiB."""

BUSY = (429, 503)
REJECTED = (401, 403)


class RspamdClient:
    """A client for the rspamd at one URL, without a slash at the end.

    :param password: sent to rspamd, if it is not empty.
    :param threshold: points from which this rspamd marks mail as spam.
    :param find_trust: loads the certificate authorities. It is called before the first request.
    """

    def __init__(
        self, reactor: Any, url: str, password: str, threshold: float, find_trust: FindTrust
    ) -> None:
        self._reactor = reactor
        self._url = url
        self._password = password
        self._threshold = threshold
        self._find_trust = find_trust

    async def report(self, mail: bytes) -> FilterVerdict:
        """Return the verdict about a mail.

        :raises FilterFailed: rspamd did not judge the mail.
        """

        def too_late(_: object, seconds: float) -> bytes:
            raise FilterFailed(FilterProblem.TIMEOUT, f"no answer in {seconds:.0f} s")

        asking = Deferred.fromCoroutine(self._exchange(mail))
        answer = await asking.addTimeout(ANSWER_SECONDS, self._reactor, too_late)
        try:
            return read_rspamd_verdict(answer, self._threshold)
        except ReportUnreadable as problem:
            raise FilterFailed(FilterProblem.BROKEN_ANSWER, str(problem)) from problem
        except Skipped:
            raise FilterFailed(FilterProblem.SKIPPED) from None

    @cached_property
    def _agent(self) -> Agent:
        verified = VerifiedHosts(self._find_trust)
        return Agent(self._reactor, verified, connectTimeout=CONNECT_SECONDS)

    async def _exchange(self, mail: bytes) -> bytes:
        headers = Headers({"User-Agent": [USER_AGENT], "Content-Type": ["message/rfc822"]})
        if self._password:
            headers.setRawHeaders("Password", [self._password])
        url = f"{self._url}/checkv2".encode("ascii")
        received = bytearray()
        try:
            body = BytesBody(mail)
            response: IResponse = await self._agent.request(b"POST", url, headers, body)
            await collect(response, bounded(received, MAX_ANSWER))
        except CancelledError:
            raise
        except (ConnectError, DNSLookupError, ResponseNeverReceived, OSError) as failure:
            # The message is not logged because it contains addresses.
            raise FilterFailed(FilterProblem.UNREACHABLE, type(failure).__name__) from failure
        except Exception as failure:
            problem = f"{type(failure).__name__}: {failure}"
            raise FilterFailed(FilterProblem.BROKEN_ANSWER, problem) from failure
        if response.code in BUSY:
            raise FilterFailed(FilterProblem.BUSY, f"status {response.code}")
        if response.code != 200:
            rest = ", the password is wrong" if response.code in REJECTED else ""
            raise FilterFailed(FilterProblem.BROKEN_ANSWER, f"status {response.code}{rest}")
        return bytes(received)
