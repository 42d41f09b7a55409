"""The numbers in docs/explanation/security.md are those of the limits."""

from pathlib import Path

from mailcheck.assembly.workers import (
    LONGEST_COMMIT,
    LONGEST_READING,
    MOST_PASSWORD_THREADS,
    password_threads,
)
from mailcheck.config.options import Config
from mailcheck.core.deliverability_tests import MAX_PENDING
from mailcheck.core.inbound import (
    ANSWER_KEPT,
    MOST_A_LOOP,
    MOST_ANSWERS,
    MOST_ATTEMPTS,
    MOST_MAILS,
    MOST_ROUTES,
)
from mailcheck.core.inbound import MOST_OCTETS as MOST_MAIL_OCTETS
from mailcheck.core.memory.client_limits import AMPLE
from mailcheck.core.webhooks import MOST_WEBHOOKS
from mailcheck.daemon.short_turns import TURN
from mailcheck.dns import exchange, wire_format
from mailcheck.engines.disk_reserve import MAX_LOG
from mailcheck.operations import dns_evaluation, semaphores
from mailcheck.operations.accounts import passwords
from mailcheck.operations.accounts.sign_in import (
    PER_ADDRESS,
    PER_DEVICE,
    PER_NAME,
    PER_NAME_AND_ADDRESS,
)
from mailcheck.operations.inbound.send_mail import MOST_RECIPIENTS
from mailcheck.operations.inbox import contents
from mailcheck.operations.inbox.webhooks.deliver_webhooks import AT_ONCE
from mailcheck.operations.parked_waits import PAGES_OF_PERSON
from mailcheck.probes.webhook_sender import MAX_OCTETS, MOST_A_MINUTE, SECONDS
from mailcheck.smtp.settings import Limits
from mailcheck.store.domains.report_quotas import OF_ACCOUNT
from mailcheck.store.inbound_store import MOST_WAITING
from mailcheck.web.site.requests import MAX_BODY
from mailcheck.web.site.response_buffers import MAX_BUFFERED, MAX_BUFFERED_OF_CLIENT
from tests.table import rows

PAGE = (Path(__file__).parents[1] / "docs" / "explanation" / "security.md").read_text()
SMTP = Limits()
CONFIG = Config()


@rows(
    f"| connections | client (IPv6: its /64) | {SMTP.connections_per_address};",
    f"| connections | port | {SMTP.connections:,} ",
    f"| time to the first command | connection | {SMTP.first_command} s",
    f"| silence | connection | {SMTP.idle} s",
    f"| time for a message | message | {SMTP.message} s",
    f"| size | message | {SMTP.message_size // 2**20} MiB",
    f"| unfinished mail held in memory | daemon | {AMPLE.incoming // 2**20} MiB",
    f"| commands without an accepted mail | connection | {SMTP.commands:,} ",
    f"| errors, failed logins | connection | {SMTP.errors}, {SMTP.auth_failures} ",
    f"does not wait for | connection | {SMTP.free_refusals} at once, ",
    f"| recipients | message | {SMTP.recipients} ",
    f"| messages, bytes | inbox | {CONFIG.inbox.max_messages:,}, 1 GiB",
    f"{MAX_LOG // 2**20} MiB in reserve",
    f"| time for a commit | process that writes | {LONGEST_COMMIT:.0f} s",
    f"| requests | API key | {CONFIG.limits.requests_per_minute} a minute, 1,000 a day",
    f"| waits, streams of events | API key | {CONFIG.limits.waits_per_key} ",
    f"| live pages | person | {PAGES_OF_PERSON} |",
    f"all | {MAX_BUFFERED_OF_CLIENT // 2**20} MiB, {MAX_BUFFERED // 2**20} MiB |",
    f"| connections | client (IPv6: its /64) | {CONFIG.web.max_connections_per_address:,};",
    f"| connections | daemon | {CONFIG.web.max_connections:,},",
    f"| a body | request | {MAX_BODY // 1024} KiB",
    f"| HTTP, DNS | {TURN * 1000} ms each",
    f"| webhooks | account | {MOST_WEBHOOKS} ",
    f"that they are posted to | {MOST_A_MINUTE:,} a minute",
    f"| time | event | {SECONDS:.0f} s",
    f"| an answer | event | {MAX_OCTETS // 1024} KiB",
    f"| events under way | daemon | {AT_ONCE};",
    f"| routes | account | {MOST_ROUTES} ",
    f"first attempt | account | {MOST_WAITING} ",
    f"attempts | account | {MOST_MAILS:,}, {MOST_MAIL_OCTETS // 2**20} MiB, {MOST_ATTEMPTS:,} ",
    f"are stored | account | {MOST_ANSWERS}, of {ANSWER_KEPT // 1024} KiB each",
    f"| recipients | mail | {MOST_RECIPIENTS} ",
    f"same two addresses | route | {MOST_A_LOOP} a minute",
    f"name | {PER_NAME_AND_ADDRESS.per_minute} a minute, {PER_NAME_AND_ADDRESS.per_day} a day",
    f"| of one address | {PER_ADDRESS.per_minute} a minute, {PER_ADDRESS.per_day} a day",
    f"wherever | {PER_NAME.per_minute} a minute, {PER_NAME.per_day:,} a day",
    f"all these | {PER_DEVICE.per_minute} a minute, {PER_DEVICE.per_day} a day",
    f"| accounts that one address makes | {CONFIG.accounts.per_address} a day",
    f"| one for every two processors, {MOST_PASSWORD_THREADS} at most",
    f"take turns | {passwords.OF_CLIENT}, of {passwords.MAX_UNDER_WAY} in all",
    f"at most {passwords.PATIENCE:.0f} s, and addresses take turns",
    f"| account and day | {OF_ACCOUNT.rows:,} and {OF_ACCOUNT.octets // 2**20} MiB",
    f"| questions to DNS | request | {dns_evaluation.MAX_QUESTIONS} ",
    (
        f"| records, octets of DNS | answer | {wire_format.MAX_RECORDS}, "
        f"{wire_format.MAX_OCTETS // 1024} KiB; {wire_format.MAX_ALIASES} links of CNAME"
    ),
    f"{wire_format.MAX_WORK:,} steps of about a microsecond; over {wire_format.CHEAP_STEPS} ",
    f"| DNS socket | {exchange.OCTETS_PER_TURN} octets and one reply",
    (
        f"| records, octets of DNS | request | {dns_evaluation.MAX_RECORDS}, "
        f"{dns_evaluation.MAX_OCTETS // 1024} KiB"
    ),
    f"| checks under way | account | {semaphores.CHECKS_OF_ACCOUNT}, the next wait",
    f"or after {semaphores.CHECK_PATIENCE:.0f} s",
    (
        f"| large mails (from {contents.LARGE // 2**20} MiB) in hand | account | "
        f"{contents.OF_ACCOUNT}, of {contents.AT_ONCE} in all"
    ),
    f"503 after {contents.PATIENCE:.0f} s for its bytes",
    f"{contents.DERIVING_PATIENCE:.0f} s for the message",
    f"| tests that wait for mail | account | {MAX_PENDING} ",
    f"| reading a mail | mail | {LONGEST_READING:.0f} s",
)
def test_each_number_is_that_of_its_limit(said: str) -> None:
    """The page and the code state the same number."""
    assert said in PAGE


@rows((1, 1), (2, 1), (3, 1), (4, 2), (64, 2))
def test_half_of_the_processors_hash_passwords(processors: int, threads: int) -> None:
    """The number of threads that hash passwords is the documented one, and at least one."""
    assert password_threads(processors) == threads
