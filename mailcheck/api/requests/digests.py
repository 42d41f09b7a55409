"""Requests of digests."""

from typing import Annotated, ClassVar

from mailcheck.api.requests.checks import QUIET_TIME
from mailcheck.api.requests.fields import LONG_TEXT, one_of
from mailcheck.api.requests.parsing import Description, Request
from mailcheck.core.domains.digests import (
    MOST_DIGEST_RECEIVERS,
    DigestInterval,
    DigestSettings,
)
from mailcheck.core.domains.watches import QuietTime

NEVER = "never"

EVERY = one_of([*(interval.value for interval in DigestInterval), NEVER])


class DigestChoice(Request, frozen=True, kw_only=True):
    """The digest to be sent."""

    example: ClassVar = '{"every": "week", "quiet": "22:00-08:00"}'

    every: Annotated[
        Annotated[str, EVERY],
        Description("week: on Mondays; month: on the first day; never: no digest"),
    ]
    to: Annotated[
        tuple[Annotated[str, LONG_TEXT], ...],
        Description("mail addresses beside your own inbox", at_most=MOST_DIGEST_RECEIVERS),
    ] = ()
    quiet: Annotated[
        Annotated[QuietTime | None, QUIET_TIME],
        Description("time of day (UTC) without digests, like 22:00-08:00; empty: none"),
    ] = None

    @property
    def settings(self) -> DigestSettings:
        """The settings."""
        return make_settings(self.every, self.to, self.quiet)


def make_settings(every: str, to: tuple[str, ...], quiet: QuietTime | None) -> DigestSettings:
    """Return the settings for a chosen interval, which may be `NEVER`."""
    return DigestSettings(None if every == NEVER else DigestInterval(every), to, quiet)
