"""The requests of MCP tools, where they differ from those of REST.

A model reads every description and every message, so texts and pages are shorter.
"""

from typing import Annotated, ClassVar

from mailcheck.api.requests.checks import IP_ADDRESS, SELECTOR, Domain
from mailcheck.api.requests.fields import (
    DEFAULT_SILENCE,
    DEFAULT_WAIT,
    FLAG,
    MOST_WAITED_FOR,
    NAME,
    TAG,
    TEXT,
    WHOLE_NUMBER,
    Limit,
    PageNumber,
    Timeout,
)
from mailcheck.api.requests.inbox import ListMessages, WaitFilters
from mailcheck.api.requests.reading import Request, fields_of, said
from mailcheck.core.errors import InvalidParameter


class NewAddress(Request, frozen=True, kw_only=True):
    """An address; without a tag a unique one is made."""

    tag: Annotated[
        Annotated[str, TAG] | None,
        said(brief="use this +tag instead of a unique one (letters, digits, dots, dashes)"),
    ] = None


class Wait(WaitFilters, frozen=True, kw_only=True):
    """A wait for a message, for several, or for none."""

    timeout: Annotated[
        Timeout | None,
        said(
            brief=f"seconds to wait; answered by 55 at the latest; {DEFAULT_SILENCE:g} with none",
            default=DEFAULT_WAIT,
        ),
    ] = None
    count: Annotated[
        Annotated[int, WHOLE_NUMBER] | None,
        said(brief="wait for so many mails and return messages", low=1, high=MOST_WAITED_FOR),
    ] = None
    none: Annotated[
        bool, FLAG, said(brief="true: expect that no such mail comes within timeout")
    ] = False

    @property
    def seconds(self) -> float:
        """How long is waited, in seconds.

        :raises InvalidParameter: both ``none`` and ``count`` are given.
        """
        if self.none and self.count is not None:
            raise InvalidParameter("none", "none and count exclude each other: send one of them")
        default = DEFAULT_SILENCE if self.none else DEFAULT_WAIT
        return default if self.timeout is None else self.timeout


class List(ListMessages, frozen=True, kw_only=True):
    """Which messages are listed, on pages that a model can read."""

    undescribed: ClassVar = tuple(fields_of(WaitFilters))

    limit: Limit = 20


class OneMessage(Request, frozen=True, kw_only=True):
    """A message."""

    id: Annotated[str, TEXT, said(brief="id of a message")]


class GetMessage(OneMessage, frozen=True, kw_only=True):
    """A message, and how much of it is shown."""

    full: Annotated[
        bool,
        FLAG,
        said(brief="true: long text, HTML, links and headers too; a long mail is 60 KB"),
    ] = False
    checks: Annotated[
        bool,
        FLAG,
        said(brief="true: also HTML that mail programs or screen readers can't read"),
    ] = False


class CheckDomain(Request, frozen=True, kw_only=True):
    """A domain that is scored."""

    domain: Annotated[Domain, said(brief="the domain in mail addresses, like example.com")]
    selector: Annotated[
        Annotated[str, SELECTOR] | None,
        said(brief="a DKIM selector that the domain signs with (s= of its signatures)"),
    ] = None
    ip: Annotated[
        Annotated[str, IP_ADDRESS] | None, said(brief="an address that the domain sends mail from")
    ] = None


class ShowReports(Request, frozen=True, kw_only=True):
    """A domain that reports are about."""

    domain: Annotated[Annotated[str, NAME] | None, said(brief="none: list the domains")] = None
    page: Annotated[PageNumber, said(brief="")] = 1


class WaitForReport(Request, frozen=True, kw_only=True):
    """A wait for the end of a deliverability test."""

    test_id: Annotated[str, NAME, said(brief="as generate_test gave it")]
    timeout: Annotated[Timeout, said(brief="seconds to wait; answered by 55 at the latest")] = (
        DEFAULT_WAIT
    )


class GetWatch(Request, frozen=True, kw_only=True):
    """A watch."""

    watch_id: Annotated[str, NAME, said(brief="its id in list_watches")]
