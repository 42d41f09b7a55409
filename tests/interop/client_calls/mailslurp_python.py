"""Does each call of MailSlurp's client for Python, of about 850.

A call that mailcheck offers returns an object, whose class requires each field that MailSlurp
promises. The values of the most used calls are checked too. All other calls must be refused with a
reason. Those that are refused because their path is none of mailcheck are one row of the results.
"""

import inspect
import os
import re
from collections.abc import Callable
from typing import Any

import mailslurp_client as slurp
from calls import RECORDER, call, finish, results, send

OTHER = "is not a path of MailSlurp in mailcheck"

configuration = slurp.Configuration(host=f"{RECORDER}/mailslurp")
configuration.api_key["x-api-key"] = os.environ["API_KEY"]
configuration.client_side_validation = False
api = slurp.ApiClient(configuration)
inboxes = slurp.InboxControllerApi(api)
emails = slurp.EmailControllerApi(api)
waits = slurp.WaitForControllerApi(api)
webhooks = slurp.WebhookControllerApi(api)


def new_inbox() -> Any:
    """Return a new inbox with a mail."""
    inbox = inboxes.create_inbox(name="calls")
    send(inbox.email_address)
    return inbox


def new_hook(inbox_id: str) -> Any:
    """Return the id of a new webhook."""
    return webhooks.create_webhook(inbox_id, {"url": "https://hooks.example/mail"}).id


def values_for(inbox: Any, hook_id: str = "x") -> dict[str, object]:
    """Return values for the parameters of all calls."""
    email = waits.wait_for_latest_email(inbox_id=inbox.id, timeout=10_000)
    files = {one.name: one.id for one in emails.get_email_attachments(email.id)}
    return {
        "inbox_id": inbox.id,
        "email_id": email.id,
        "attachment_id": files["a.csv"],
        "webhook_id": hook_id,
        "email_address": inbox.email_address,
        "count": 1,
        "timeout": 2_000,
        "timeout_millis": 2_000,
        "read": True,
        "create_webhook_options": {"url": "https://hooks.example/mail"},
        "create_inbox_dto": {"name": "calls"},
        "update_inbox_options": {"name": "renamed"},
        "content_match_options": {"pattern": r"code is <b>(\d{6})"},
        "match_options": {"matches": [{"field": "SUBJECT", "should": "CONTAIN", "value": "come"}]},
        "wait_for_conditions": {
            "inboxId": inbox.id,
            "count": 1,
            "countType": "EXACTLY",
            "timeout": 2_000,
            "unreadOnly": False,
        },
    }


def arguments_of(method: Callable[..., object], values: dict[str, object]) -> list[object]:
    """Return the required arguments of a method."""
    found: list[object] = []
    for name in inspect.signature(method).parameters:
        if name in ("self", "kwargs"):
            continue
        is_object = re.search(r"options|dto|request|body|metadata", name) is not None
        default = {} if is_object else __file__ if name == "file" else "x"
        found.append(values.get(name, default))
    return found


def optional_arguments(
    method: Callable[..., object], values: dict[str, object]
) -> dict[str, object]:
    """Return those optional arguments that choose the inbox or limit the time of a wait."""
    names = re.findall(r":param \S+ (\w+):", method.__doc__ or "")
    wanted = ("inbox_id", "timeout", "timeout_millis")
    taken = inspect.signature(method).parameters
    found = {one: values[one] for one in names if one in wanted and one not in taken}
    if "list[str] inbox_id:" in (method.__doc__ or ""):
        found["inbox_id"] = [values["inbox_id"]]
    return found


def is_shown(value: object, code: str = "482913") -> bool:
    """Return whether a code is part of an answer."""
    return code in str(value)


CHECKS: dict[str, Callable[[Any], bool]] = {
    "get_email": lambda one: one.subject == "Welcome" and one._from == "shop@example.com",
    "wait_for_latest_email": lambda one: one.subject == "Welcome" and is_shown(one.body),
    "wait_for_nth_email": lambda one: one.subject == "Welcome",
    "wait_for_matching_first_email": lambda one: one.subject == "Welcome",
    "wait_for_matching_emails": lambda found: [one.subject for one in found] == ["Welcome"],
    "wait_for_email_count": lambda found: len(found) == 1,
    "wait_for": lambda found: len(found) == 1,
    "get_emails": lambda found: [one.subject for one in found] == ["Welcome"],
    "get_email_codes": lambda one: one.code == "482913",
    "get_email_links": lambda one: "https://shop.example/verify?token=abc" in one.links,
    "get_email_content_match": lambda one: one.matches[1] == "482913",
    "get_email_text_lines": lambda one: is_shown(one.lines),
    "get_email_html": is_shown,
    "get_raw_email_json": lambda one: "Subject: Welcome" in one.content,
    "get_inbox_email_count": lambda one: one.total_elements == 1,
    "get_inbox_emails_paginated": lambda one: one.total_elements == 1,
    "get_email_attachments": lambda found: {one.name for one in found} == {"cat.png", "a.csv"},
    "does_inbox_exist": lambda one: one.exists is True,
}


def do(name: str, method: Callable[..., object], values: dict[str, object]) -> None:
    """Do a call, and check what it returns, or with which reason it is refused."""
    arguments = arguments_of(method, values)
    more = optional_arguments(method, values)
    reason = ""

    def work() -> None:
        nonlocal reason
        try:
            value = method(*arguments, **more)
        except slurp.ApiException as error:
            if error.status != 501:
                raise AssertionError(f"{error.status}: {error.body}") from error
            # An answer to HEAD has no body.
            reason = next(iter(re.findall(r'"message":"(.*?)","errorClass"', error.body)), OTHER)
            return
        check = CHECKS.get(name)
        assert check is None or check(value), f"unexpected answer {str(value)[:200]}"

    call(name, work)
    if reason:
        results[-1] |= {"outcome": "refused", "why": reason}


controllers = {name: getattr(slurp, name)(api) for name in dir(slurp) if name.endswith("Api")}
methods = {
    f"{controller}.{name}": getattr(one, name)
    for controller, one in controllers.items()
    for name in dir(one)
    if not name.startswith("_") and not name.endswith("_with_http_info") and name != "api_client"
}
deleting = re.compile(r"delete|empty|flush|expire|cancel|disconnect|remove")
inbox = new_inbox()
given = values_for(inbox, new_hook(inbox.id))
names: dict[str, str] = {}
for whole, method in methods.items():
    name = whole.partition(".")[2]
    names[name] = whole
    if not deleting.search(name):
        do(name, method, given)
for name, whole in names.items():
    if not deleting.search(name):
        continue
    if "webhook" in name:
        do(name, methods[whole], {**given, "webhook_id": new_hook(inbox.id)})
    else:
        is_offered = re.search(r"email|inbox", name) is not None
        do(name, methods[whole], values_for(new_inbox()) if is_offered else given)
for hook in webhooks.get_all_webhooks().content:
    webhooks.delete_webhook_by_id(hook.id)

others = [one for one in results if OTHER in one.get("why", "")]
kept = [one for one in results if one not in others]
results.clear()
results.extend(kept)
results.append({"call": f"{len(others)} other calls", "outcome": "refused", "why": OTHER})
finish(())
