"""The clients of other products whose calls are compared, and the results of the last run.

A script in ``tests/interop/client_calls/`` does each call of a client and checks what the client
returns. `tests/interop/test_client_calls.py` runs the scripts, and compares the results with those
in ``client_calls/results/``. ``make client-calls`` records them again. The reference pages name for
each route the calls that prove it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from mailcheck.api.urls import PROVIDERS_PATH
from mailcheck.assembly.doors.compatible import FACADES
from mailcheck.web.providers.catalogue import PROVIDERS

ROOT = Path(__file__).parents[2]
SCRIPTS = Path(__file__).parent / "client_calls"
RESULTS = SCRIPTS / "results"


class Client(NamedTuple):
    """A client: its name, the product it is made for, its package, and the script of its calls.

    ``home`` is the folder of the installed package. ``installer`` pins its version.
    """

    name: str
    product: str
    package: str
    script: str
    home: str = ".venv-inbox-clients"
    installer: str = "scripts/install-inbox-clients"

    @property
    def is_python(self) -> bool:
        """Whether the client is a package of Python. The others are packages of Node.js."""
        return self.script.endswith(".py")

    @property
    def command(self) -> Sequence[str]:
        """The command that runs the script."""
        program = str(ROOT / self.home / "python" / "bin" / "python") if self.is_python else "node"
        return (program, str(SCRIPTS / self.script))

    @property
    def pinned_version(self) -> str:
        """The version that `make interop` installs."""
        joint = "==" if self.is_python else "@"
        text = (ROOT / self.installer).read_text("utf-8")
        package = rf"{re.escape(self.package)}(?:\[[a-z,-]+\])?"
        found = re.search(rf'^\s+"?{package}{joint}([\w.]+)"?$', text, re.M)
        assert found is not None, f"{self.installer} does not install {self.package}"
        return found[1]


SENDERS = (
    ("resend (Node.js)", "resend", "resend", "resend.mjs"),
    ("resend (Python)", "resend", "resend", "resend_client.py"),
    ("postmark (Node.js)", "postmark", "postmark", "postmark.mjs"),
    ("@sendgrid/mail (Node.js)", "sendgrid", "@sendgrid/mail", "sendgrid.mjs"),
    ("sendgrid (Python)", "sendgrid", "sendgrid", "sendgrid_client.py"),
    ("mailgun.js (Node.js)", "mailgun", "mailgun.js", "mailgun.mjs"),
    ("mailgun (Python)", "mailgun", "mailgun", "mailgun_client.py"),
    ("@aws-sdk/client-sesv2 (Node.js)", "ses", "@aws-sdk/client-sesv2", "sesv2.mjs"),
    ("boto3 (Python)", "ses", "boto3", "boto3_ses.py"),
    ("django-ses (Python)", "ses", "django-ses", "django_ses_client.py"),
    ("nodemailer (Node.js)", "ses", "nodemailer", "nodemailer_ses.mjs"),
    ("@getbrevo/brevo (Node.js)", "brevo", "@getbrevo/brevo", "brevo.mjs"),
    ("brevo-python (Python)", "brevo", "brevo-python", "brevo_client.py"),
    ("mailtrap (Python)", "mailtrap", "mailtrap", "mailtrap_client.py"),
)
"""The clients that send mail over the API of a provider: name, provider, package and script."""

CLIENTS = (
    Client("mailpit-api (Node.js)", "mailpit", "mailpit-api", "mailpit_api.mjs"),
    Client("cypress-mailpit (Node.js)", "mailpit", "cypress-mailpit", "cypress_mailpit.mjs"),
    Client("mailpit-api-client (Python)", "mailpit", "mailpit-api-client", "mailpit_api_client.py"),
    Client("mailhog (Node.js)", "mailhog", "mailhog", "mailhog.mjs"),
    Client("cypress-mailhog (Node.js)", "mailhog", "cypress-mailhog", "cypress_mailhog.mjs"),
    Client("mailhog (Python)", "mailhog", "mailhog", "mailhog_client.py"),
    Client("mailosaur (Node.js)", "mailosaur", "mailosaur", "mailosaur.mjs"),
    Client("mailosaur (Python)", "mailosaur", "mailosaur", "mailosaur_client.py"),
    Client("mailslurp-client (Node.js)", "mailslurp", "mailslurp-client", "mailslurp.mjs"),
    Client("mailslurp-client (Python)", "mailslurp", "mailslurp-client", "mailslurp_python.py"),
    *(Client(*one, ".venv-providers", "scripts/install-provider-sdks") for one in SENDERS),
)
"""All clients, in the order of the page."""


class Outcome(Enum):
    """What a call of a client has shown."""

    SAME = "as documented"
    REFUSED = "refused"
    LOCAL = "sends no request"
    DIFFERS = "differs"


class CallResult(Struct, frozen=True):
    """A call of a client: the route of its first request, and what it has shown.

    ``why`` is the sentence with which the call was refused, or what differs.
    """

    call: str
    outcome: Outcome
    route: str = ""
    why: str = ""


class ClientRun(Struct, frozen=True):
    """All calls of a client in one run."""

    client: str
    version: str
    calls: tuple[CallResult, ...]

    def write(self) -> None:
        """Record the run."""
        text = msgspec.json.format(msgspec.json.encode(self), indent=1)
        file_of(self.client).write_bytes(text + b"\n")


def file_of(name: str) -> Path:
    """Return the file with the results of a client."""
    return RESULTS / ("-".join(re.findall(r"[a-z]+", name.lower())) + ".json")


def recorded_run(client: Client) -> ClientRun:
    """Return the run that was recorded last."""
    return msgspec.json.decode(file_of(client.name).read_bytes(), type=ClientRun)


def recorded_runs() -> Mapping[str, ClientRun]:
    """Return the recorded runs of all clients, by their names."""
    return {one.name: recorded_run(one) for one in CLIENTS}


def routes_of(product: str) -> Sequence[tuple[str, str]]:
    """Return the method and the whole path of each route that the clients of a product may use.

    Mailpit and MailHog share a listener.
    """
    shared = {"mailpit": ("mailpit", "mailhog"), "mailhog": ("mailhog", "mailpit")}
    found = [
        (route.method, one.base + route.path)
        for name in shared.get(product, (product,))
        for one in FACADES
        if one.name == name
        for route in one.routes
    ]
    found += [
        (route.method, f"{PROVIDERS_PATH}/{one.name}{route.path}")
        for one in PROVIDERS
        if one.name == product
        for route in one.routes
    ]
    return sorted(found, key=lambda one: one[1].count("<"))


_ID = re.compile(r"/[0-9A-Za-z]*[0-9][0-9A-Za-z-]{15,}(?=/|$)")


def base_of(product: str) -> str:
    """Return the path before the routes of a product."""
    bases = {one.name: one.base for one in FACADES}
    return bases.get(product, f"{PROVIDERS_PATH}/{product}")


def route_of(routes: Iterable[tuple[str, str]], method: str, path: str) -> str:
    """Return the route of a request, or the request itself if it has none."""
    for own, pattern in routes:
        steps = (re.escape(one) for one in re.split(r"<\w+>", pattern))
        if own == method and re.fullmatch("[^/]+".join(steps) + "/?", path):
            return f"{method} {pattern}"
    return f"{method} {_ID.sub('/<id>', path)}"


def proofs(product: str) -> Mapping[str, Sequence[str]]:
    """Return the calls that prove each route of a product: one call of each client.

    A route is a method and a path without the base of the product.
    """
    found: dict[str, dict[str, str]] = {}
    base = base_of(product)
    for client in CLIENTS:
        if base_of(client.product) != base:
            continue
        for one in recorded_run(client).calls:
            if one.outcome in (Outcome.SAME, Outcome.REFUSED):
                method, _, path = one.route.partition(" ")
                calls = found.setdefault(f"{method} {path.removeprefix(base)}", {})
                calls.setdefault(client.name, one.call)
    return {
        route: [f"`{call}` of {name}" for name, call in calls.items()]
        for route, calls in found.items()
    }
