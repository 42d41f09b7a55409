"""Does the calls of a client, one after the other, and prints what each has shown.

``RECORDER`` is the URL of the proxy that records the requests of each call.
"""

import json
import os
import traceback
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

RECORDER = os.environ["RECORDER"]

results: list[dict[str, str]] = []


def _tell(what: str, value: str) -> None:
    with urlopen(f"{RECORDER}/.{what}/{quote(value, '')}", timeout=60):
        pass


def send(address: str) -> None:
    """Send the sample mail to an address."""
    _tell("call", "")
    _tell("send", address)


def call(name: str, work: Callable[[], object]) -> None:
    """Do a call, which fails with an exception if it does not do what the client documents."""
    _tell("call", name)
    try:
        work()
    except Exception as error:
        if os.environ.get("SHOW_ERRORS"):
            traceback.print_exc()
        why = str(error).partition("\n")[0] or type(error).__name__
        results.append({"call": name, "outcome": "differs", "why": why})
    else:
        results.append({"call": name, "outcome": "as documented"})


def refused(name: str, reason: str, work: Callable[[], object]) -> None:
    """Do a call that mailcheck refuses, with a reason that the client shows."""
    _tell("call", name)
    why = "the call was not refused"
    try:
        work()
    except Exception as error:
        why = f"{error} {getattr(error, 'body', '')} {getattr(error, 'message', '')}"
        if reason in why:
            results.append({"call": name, "outcome": "refused", "why": reason})
            return
    results.append({"call": name, "outcome": "differs", "why": why})


def local(*names: str) -> None:
    """Name functions of the client that send no request."""
    results.extend({"call": name, "outcome": "sends no request"} for name in names)


def received(to: str) -> dict[str, Any]:
    """Return the mail to an address, once it is in the inbox."""
    key = {"Authorization": f"Bearer {os.environ['API_KEY']}"}
    url = f"{RECORDER}/api/v1/inbox/wait?to={quote(to, '')}&after=c0&timeout=10"
    with urlopen(Request(url, headers=key), timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def finish(every: Iterable[str]) -> None:
    """Print the results. ``every`` are the names of all functions of the client."""
    done = {one["call"] for one in results}
    results.extend(
        {"call": name, "outcome": "differs", "why": "not called"}
        for name in every
        if name not in done
    )
    print(json.dumps(results))
