"""Limits of one report. A report that exceeds a limit is rejected with a message, not truncated."""

from msgspec import Struct

MAX_UNPACKED = 10 * 1024 * 1024
"""Maximum number of octets of all unpacked data of one mail or file: 25,000 rows of large
reporters."""

MAX_MEMBERS = 1_000
"""Maximum number of members of gzip files and entries of zip files in one mail or file. Reporters
write one; parallel compressors write one for each 64 KB or more."""

MAX_DOCUMENTS = 10
"""Maximum number of reports in one mail or file; RFC 9990 has one."""


class FileLimits(Struct, frozen=True):
    """Limits of one mail or file: octets of unpacked data, members of archives, and reports."""

    unpacked: int
    members: int
    documents: int


OF_STRANGERS = FileLimits(MAX_UNPACKED, MAX_MEMBERS, MAX_DOCUMENTS)
"""For files that anyone can send."""

OF_IMPORTS = FileLimits(64 * 1024 * 1024, 100_000, 1_000)
"""For files that a member of the project imports. Each file in an archive, and each mail in a
mailbox, is one file."""

MAX_IMPORTED_FILES = 20_000
"""Maximum number of files in one import, with those in archives and mailboxes."""

MAX_IMPORTED = 1024 * 1024 * 1024
"""Maximum number of octets of all files of an import, unpacked."""

MAX_ROWS = 30_000
"""Maximum number of rows of one report. Google does not split smaller reports. An empty row has
nine octets."""

MAX_NESTING = 16
"""Maximum depth of nested elements; RFC 9990 needs five."""

MAX_ELEMENTS = 1_500_000
"""Maximum number of start tags of one report: fifty for each row. Large reporters write twenty."""

MAX_TEXT = 255
"""Maximum number of characters of a text: the length of a domain name."""

MAX_EVIDENCE = 20
"""Maximum number of DKIM results, and of SPF results, of one row. Receivers check ten
signatures."""

MAX_COUNT = 10**9
"""Maximum number of messages, or sessions, of one row. The largest senders send that many in a
day."""

MAX_SUM = 10**10
"""Maximum number of messages, or sessions, of one report. Sums over many reports skip a report
with more, so 64 bits hold the sum of 900 million rows, including rows stored by an earlier
version."""

MAX_PROBLEMS = 20
"""Maximum number of sentences about rows that were left out."""

MAX_SPAN = 32 * 24 * 60 * 60
"""Maximum period of a report in seconds. RFC 9990 has a day, some reporters a week or a month."""

MAX_KEPT = 10
"""Maximum domains, selectors, reporters and reasons shown for one sender or result."""

MAX_FEEDBACK = 10 * 1024 * 1024
"""Maximum number of octets of a mail with a failure report or complaint. The reported mail is
attached, and only its header is read."""

MAX_FEEDBACK_FIELDS = 200
"""Maximum number of fields of a failure report or complaint. RFC 5965, 6591 and 9991 define 30."""

MAX_NAMES = 10
"""Maximum number of domains, signatures, recipients and results read from such a report."""

MAX_REPORTED_TEXT = 4_000
"""Maximum number of characters of the text of a reported mail, or of a letter, if it is kept at
all."""

MAX_LETTER = 256 * 1024
"""Maximum number of octets of a mail that is not a report and whose text is kept."""

MAX_LINK = 1_000
"""Maximum number of characters of a link of a letter."""
