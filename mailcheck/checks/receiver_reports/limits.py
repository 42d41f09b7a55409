"""Limits of one report. A report that exceeds a limit is rejected with a message, not truncated."""

MAX_UNPACKED = 10 * 1024 * 1024
"""Maximum octets of all unpacked data of one mail or file: 25,000 rows of large reporters."""

MAX_MEMBERS = 1_000
"""Maximum members of gzip files and entries of zip files in one mail or file. Reporters write one;
parallel compressors write one for each 64 KB or more."""

MAX_DOCUMENTS = 10
"""Maximum reports in one mail or file; RFC 9990 has one."""

MAX_ROWS = 30_000
"""Maximum rows of one report; Google does not split a smaller one. An empty row has nine octets."""

MAX_NESTING = 16
"""Maximum depth of nested elements; RFC 9990 needs five."""

MAX_ELEMENTS = 1_500_000
"""Maximum start tags of one report: fifty for each row, where large reporters write twenty."""

MAX_TEXT = 255
"""Maximum characters of a text: the length of a domain name."""

MAX_EVIDENCE = 20
"""Maximum DKIM results of one row, and SPF results; receivers check ten signatures."""

MAX_COUNT = 10**9
"""Maximum messages, or sessions, of one row. The largest senders of the world send as many a
day."""

MAX_SUM = 10**10
"""Maximum messages, or sessions, of one report. Sums over many reports skip a report with more, so
64 bits hold the sum of 900 million rows, including rows stored by an earlier version."""

MAX_PROBLEMS = 20
"""Maximum sentences about rows that were left out."""

MAX_SPAN = 32 * 24 * 60 * 60
"""Maximum seconds of a report's period: RFC 9990 has a day, some reporters a week or a month."""

MAX_KEPT = 10
"""Maximum domains, selectors, reporters and reasons shown for one sender or result."""
