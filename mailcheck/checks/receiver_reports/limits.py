"""How much of one report is taken; what exceeds it is refused and said, not cut off in silence."""

MAX_UNPACKED = 10 * 1024 * 1024
"""Octets of all that one mail or file unpacks to: 25,000 rows as large reporters write them."""

MAX_MEMBERS = 1_000
"""Members of gzip files and entries of zip files in one mail or file. Reporters write one; programs
that pack in parallel write one for each 64 KB or more."""

MAX_DOCUMENTS = 10
"""Reports in one mail or file; RFC 9990 has one."""

MAX_ROWS = 30_000
"""Rows of one report. Google splits none below it; a row that says nothing takes nine octets."""

MAX_NESTING = 16
"""Elements inside each other; RFC 9990 needs five."""

MAX_ELEMENTS = 1_500_000
"""Start tags of one report: fifty for each row, where large reporters write twenty."""

MAX_TEXT = 255
"""Characters that are kept of a text: as many as a domain name has."""

MAX_EVIDENCE = 20
"""DKIM results of one row that are kept, and SPF results; receivers look at ten signatures."""

MAX_COUNT = 10**9
"""Messages, or sessions, of one row. The largest senders of the world send as many a day."""

MAX_SUM = 10**10
"""Messages, or sessions, of one report. Sums of many reports count no report with more: 64 bits
then hold the sum of 900 million rows, also of rows that an earlier version stored."""

MAX_PROBLEMS = 20
"""Sentences about rows that were left out."""

MAX_SPAN = 32 * 24 * 60 * 60
"""Seconds that one report may be about: RFC 9990 has a day, some send one a week or a month."""

MAX_KEPT = 10
"""Different domains, selectors, reporters and reasons that are shown of one sender or result."""
