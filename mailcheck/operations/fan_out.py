"""Doing several things at once; what was begun is never left behind."""

from collections.abc import Coroutine
from typing import Any

from twisted.internet.defer import Deferred, gatherResults


async def run_all(*coroutines: Coroutine[Any, Any, Any]) -> list[Any]:
    """Run all at the same time; gives their results in order.

    When one fails, or the caller is cancelled, the others are cancelled and
    their end is awaited; the failure that came first is raised.
    `gatherResults` alone lets the others run on.
    """
    running = [Deferred.fromCoroutine(coroutine) for coroutine in coroutines]
    try:
        return await gatherResults(running, consumeErrors=True)
    except BaseException as failure:
        for one in running:
            one.cancel()
        raise getattr(getattr(failure, "subFailure", None), "value", failure) from None
