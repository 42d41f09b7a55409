"""The maximum cost of one call of a stranger, which each route, page and tool declares.

A test calls each of them with hostile arguments, and fails if a call costs more than is declared.
"""

from msgspec import Struct


class Cost(Struct, frozen=True):
    """The maximum cost of one call.

    ``rows`` and ``octets`` are the growth of the store, ``questions`` are DNS questions. The other
    fields count pieces of work for a process or its threads: ``content``, ``passwords``,
    ``analysis``, ``large``, ``requests`` and ``imports``.
    """

    rows: int = 0
    octets: int = 0
    questions: int = 0
    content: int = 0
    passwords: int = 0
    analysis: int = 0
    large: int = 0
    requests: int = 0
    imports: int = 0


FREE = Cost()
"""The call is answered by the main process, from memory and by reads. It may change stored rows,
and adds none."""

DOMAIN = Cost(rows=40, octets=8192, questions=320)
"""Checks of a domain: as many questions as a zone can be made to cause. A question that several
checks repeat is counted each time. Questions to lists are counted, in a row a day for each. A logo
and its certificate are fetched with at most 64 KiB each, once a minute."""

LISTS = Cost(rows=40, octets=8192, questions=150)
"""Checks against all lists."""

WATCH = Cost(rows=50, octets=16384, questions=350, analysis=2)
"""Watches: a row for each, and its runs, each of which is a check, with a logo and its
certificate."""

AUDITED = Cost(rows=2, octets=4096)
"""Changes that the audit log records: its entries are bounded for each account."""

PROVISIONED = Cost(rows=2_000, octets=1_000_000)
"""Changes of a directory, which needs a key of the operator: an account with its inbox, or a group
with all of its members and their roles."""

PROJECT = Cost(rows=4, octets=4096)
"""A project: a person owns a bounded number."""

SMALL = Cost(rows=2, octets=4096)
"""Small things that an account makes: their number is bounded for each account."""

ROUTE = Cost(rows=4, octets=8192)
"""A route into an application, the request that opens it, and the audit log: the number of routes
is bounded for each account."""

INBOUND_MAIL = Cost(rows=64, octets=131072, content=2)
"""A mail to an application: it is written in the process that derives contents, and has a row for
each recipient. Their number is bounded for each account."""

PASSWORD = Cost(rows=6, octets=4096, passwords=2)
"""Signing in: a hash in the threads for passwords, two where a name is unknown or the hash is
renewed."""

SIGN_IN = Cost(rows=16, octets=8192)
"""Signing in without a password: an account with its inbox, its identity, its session, and roles in
the projects of groups."""

MESSAGE = Cost(questions=30, content=1, analysis=2)
"""Reading a message: its content is derived once, and its authentication is checked once."""

RELEASE = Cost(rows=2, octets=4096, questions=30, content=1, analysis=2)
"""Releasing a message: it is authenticated once, and noted twice in the audit log. The operator
allows it, names the recipients, and limits them by hour."""

CONTENT = Cost(content=1)
"""The content of one mail is read."""

PARTS = Cost(content=2)
"""Parts and checks of a message, in the process that derives contents."""

PLAN = Cost(questions=600, analysis=2)
"""Plans of a DMARC policy: summed up in the process for analyses; records of at most ten senders
are tried."""

OVERVIEW = Cost(questions=100, analysis=3)
"""Overviews of reports: summed up in the process for analyses."""

OVERVIEW_OR_PLAN = Cost(questions=600, analysis=3)
"""Overview of reports, or a plan of the DMARC policy, for an agent: the larger cost of both."""

SCORE = Cost(rows=64, octets=65536, questions=200, content=1, analysis=4)
"""Scoring a mail: it is stored once and read twice, its hosts are looked up, and its selectors are
remembered."""

ANY_OPERATION = Cost(rows=64, octets=65536, questions=350, content=1, analysis=4)
"""Trying a call on a page of the API reference: what the most expensive of these calls costs."""

MAIL = Cost(rows=24, octets=65536, content=1)
"""Mail: a row for each recipient, two for the mail, one for a new tag, and one for each selector
that it names."""

POSTED_MAIL = Cost(rows=25, octets=131072, content=2, requests=1)
"""Mail over the API of a provider: a mail, and one row for its idempotency key. A batch has at most
1,000 mails and 64 MiB. The request is read in a process of its own."""

LISTED_MAILS = Cost(content=100)
"""A page of mails that came over the API of a provider, of at most 100."""

QUESTION = Cost(requests=1)
"""A question about the account to the API of a provider. It is answered in the process that reads
requests."""

DECISION = Cost(rows=1, octets=4096)
"""Decisions about senders in reports: one row for each sender, and a limited number for an
account."""

REPORT = Cost(rows=3, octets=65536, questions=30, analysis=1, large=1)
"""Reports of receivers: read by one process, one report at a time; their rows are counted for an
account."""

IMPORT = Cost(rows=600_000, octets=2**29, imports=20_000)
"""An import of reports: its body has at most 64 MiB, and is read by a process of its own. The rows
of an account are bounded, and imports take turns."""

CONNECTION = Cost(rows=6, octets=16384, questions=4)
"""Connecting a program by OAuth: a client, of which at most 2,000 register themselves; a code; a
grant with two tokens; the audit log. A client id that is a URL is fetched once in five minutes, and
each address and account is limited."""

CHAOS = Cost(rows=1, octets=1024)
"""The simulated failures of Mailpit and MailHog: one row, which all daemons share."""

WHOLE_MAILS = Cost(content=500)
"""A page of whole mails for a client of MailHog, of at most 500."""
