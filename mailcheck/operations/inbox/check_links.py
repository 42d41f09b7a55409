"""Asking for the links of a mail, when somebody wants to know whether they work.

Only links that stand in the mail are asked for, so that nobody scans with it; those that a
request may use up (`MailLink.is_harmless`) only where they are named. Each account has a budget.
"""

from collections.abc import Sequence
from urllib.parse import urlsplit

from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.link_checks import LinkAnswer, LinkCheck, LinkProblem, judge_link
from mailcheck.checks.mail_checks import MailChecks
from mailcheck.core.accounts import RequestLimits
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.identifiers import AccountId
from mailcheck.core.keys import key_of
from mailcheck.operations.accounts.authenticate import RequestMeter
from mailcheck.operations.concurrency import run_all
from mailcheck.operations.places import NoPlace, Places
from mailcheck.ports.probes import LinkProber

METHODS = ("HEAD", "GET")

LINKS_AT_ONCE = 100
"""Links of one request."""

DEADLINE = 25.0
"""Seconds for all links of a request: programs give up after thirty."""

OF_ACCOUNT = 6
"""Links that one account is asking for at a time."""

OF_HOST = 2
"""Links of one host that are being asked for, whoever asks."""

WAITING = 1_000
"""Links that wait for their turn."""

BUDGET = RequestLimits(per_minute=200, per_day=5_000)
"""Links that an account may ask for: a long newsletter has about 150."""


class CheckLinks:
    """Asks for links, as many at a time as are fair to the accounts and to the hosts."""

    def __init__(self, prober: LinkProber, meter: RequestMeter, clock: IReactorTime) -> None:
        self._prober = prober
        self._meter = meter
        self._clock = clock
        self._accounts: Places[AccountId] = Places(clock, of_one=OF_ACCOUNT, waiting=WAITING)
        self._hosts: Places[str] = Places(clock, of_one=OF_HOST, waiting=WAITING)

    async def check(
        self, account_id: AccountId, checks: MailChecks, urls: Sequence[str] | None, method: str
    ) -> list[LinkCheck]:
        """Ask for links of a mail: those named, else all that are harmless.

        :raises InvalidParameter: one is no link of the mail; too many; or several by GET.
        """
        chosen = choose_links(checks, urls, method)
        ends_at = self._clock.seconds() + DEADLINE
        found: list[LinkCheck] = await run_all(
            *(self._check_one(account_id, url, method, ends_at) for url in chosen)
        )
        return found

    async def _check_one(
        self, account_id: AccountId, url: str, method: str, ends_at: float
    ) -> LinkCheck:
        busy = LinkAnswer(url, method, problem=LinkProblem.BUSY)
        try:
            async with (
                self._accounts.held(account_id, self._left(ends_at)),
                self._hosts.held(_host_of(url), self._left(ends_at)),
            ):
                usage = await self._meter.count(key_of("links of account", account_id), BUDGET)
                if usage.exhausted is not None:
                    return judge_link(LinkAnswer(url, method, problem=LinkProblem.BUDGET))
                looking = self._prober.look_at_link(url, method)
                seconds = max(0.0, self._left(ends_at))
                looking.addTimeout(seconds, self._clock, lambda _, __: busy)
                return judge_link(await looking)
        except NoPlace:
            return judge_link(busy)

    def _left(self, ends_at: float) -> float:
        return ends_at - self._clock.seconds()


def choose_links(checks: MailChecks, urls: Sequence[str] | None, method: str) -> Sequence[str]:
    """Give the links that are meant; raises as `CheckLinks.check`."""
    if urls is None:
        if method != "HEAD":
            raise InvalidParameter("urls", "urls is missing: GET asks for one link that is named")
        return [link.url for link in checks.links if link.is_harmless][:LINKS_AT_ONCE]
    chosen = list(dict.fromkeys(urls))
    if len(chosen) > LINKS_AT_ONCE:
        raise InvalidParameter(
            "urls", f"urls has {len(chosen)} links; {LINKS_AT_ONCE} are asked for at a time"
        )
    if method == "GET" and len(chosen) != 1:
        raise InvalidParameter("urls", "urls has one link where method is GET")
    known = {link.url for link in checks.links}
    for url in chosen:
        if url not in known:
            raise InvalidParameter("urls", f"{url[:100]!r} is no link of this mail")
    return chosen


def _host_of(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""
