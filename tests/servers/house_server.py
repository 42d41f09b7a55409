"""An in-memory house behind a real port, for clients that need one, such as the command line.

with serving_house(house) as url:
run_command("watch", "list", "--url", url)
"""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.house import House
from tests.servers.http_stub import QuietHandler, serving


@contextmanager
def serving_house(house: House) -> Iterator[str]:
    """Serve the house over HTTP; yield its URL.

    Requests are handled one at a time.
    """

    class Answering(QuietHandler):
        def answer(self) -> None:
            """Answer a request."""
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name: self.headers[name] for name in ("Authorization", "Content-Type")}
            given = {name: value for name, value in headers.items() if value}
            found = house.open(
                self.path, self.command, None, headers=given, data=body or None
            ).answer()
            self.send_answer(found.body, found.status)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815, required by http.server

    with serving(Answering) as url:
        yield url
