"""A house that receives and scores mail, with scripted DNS and content filter.

scored = ScoredHouse()               # with the zone of a perfect sender
test_id = scored.generate()
scored.send(test_id)                 # the perfect mail, which is scored at once
scored.house.get(f"/test/{test_id}").json["score"]   # 10.0
"""

from typing import Any

from twisted.internet.defer import maybeDeferred

from mailcheck.config.options import Config
from mailcheck.core.accounts import Account
from mailcheck.core.addresses import parse_mailbox
from mailcheck.core.deliverability_tests import ReceivedMail
from mailcheck.core.messages import Envelope
from mailcheck.operations.deliverability.run_test_checks import Analyse
from tests.fakes.memory_zone import MemoryZone
from tests.house import House, config_in_memory, result_of, run
from tests.operations.scored_mails import received, zone_with


class ScoredHouse:
    """A house that analyses mail. ``zone`` and ``content_filter`` may be changed at any time."""

    def __init__(
        self,
        zone: MemoryZone | None = None,
        config: Config | None = None,
        analyse: Analyse | None = None,
    ) -> None:
        self.zone = zone or zone_with()
        self.house = House(config or config_in_memory(), zone=self.zone, analyse=analyse)
        self.content_filter = self.house.content_filter
        run(self.house.assembly.tests.runner.start())

    def generate(self, key: str = "") -> str:
        """Create a test, and return its id."""
        answer = self.house.ask("POST", "/test/generate", key=key).answer()
        assert answer.status == 200, answer
        test_id: str = answer.json["testId"]
        return test_id

    def address(self, test_id: str) -> str:
        """Return the address of a test."""
        return f"test-{test_id}@{self.house.assembly.runtime.config.inbox.domain}"

    def send(self, test_id: str, mail: ReceivedMail | None = None) -> None:
        """Send a mail to a test, by default one without any problem."""
        self.deliver(self.address(test_id), mail)

    def deliver(self, recipient: str, mail: ReceivedMail | None = None) -> None:
        """Deliver a mail to an address of the house, as the SMTP server does."""
        mail = mail or received()
        receiver, sender = self.house.assembly.receiver, mail.envelope_sender
        accepted = result_of(
            maybeDeferred(receiver.accept_recipient, mail.session, sender, parse_mailbox(recipient))
        )
        envelope = Envelope(sender, (accepted,), mail.transcript)
        result_of(maybeDeferred(receiver.deliver, mail.session, envelope, mail.raw_message))
        self.house.pass_time(0)

    def scored(self, mail: ReceivedMail | None = None) -> tuple[str, Any]:
        """Create a test, and send a mail to it. Return its id and the completed test."""
        test_id = self.generate()
        self.send(test_id, mail)
        found = self.get(test_id)
        assert found["status"] == "completed", found
        return test_id, found

    def get(self, test_id: str) -> Any:
        """Return a test."""
        answer = self.house.get(f"/test/{test_id}")
        assert answer.status == 200, answer
        return answer.json

    def post(self, path: str, **options: Any) -> Any:
        """Send a POST request, and return the response."""
        return self.house.ask("POST", path, **options).answer()

    def stranger(self) -> str:
        """Return the key of another account."""
        account: Account = self.house.add_account("stranger")
        return self.house.issue_key(account)

    def close(self) -> None:
        """Stop the analyses, and close the store."""
        run(self.house.assembly.tests.runner.stop())
        self.house.assembly.tests.feeds.close()
        self.house.close()
