"""How much of one mail is looked at; what lies beyond stays readable raw and is no error."""

KIB = 1024

MAX_PARTS = 1_000
"""MIME parts of one mail. Real digests and photo mails stay below 200."""

MAX_DEPTH = 50
"""Multiparts inside each other. Real mail stays below 10; each level reads its range once more."""

MAX_HEADER_FIELDS = 1_000
"""Header fields of one entity. Mail through many lists with ARC sets reaches about 150."""

MAX_PART_FIELDS = 100
"""Header fields of one part; RFC 2045 and its kin define about 12 that mean anything there."""

MAX_HEADER_BYTES = 256 * KIB
"""Header section of one entity. Postfix cuts at 100 KiB (header_size_limit)."""

MAX_SHORT_HEADER = 64 * KIB
"""Bytes of a header in which From and Subject are searched without taking it apart."""

MAX_MAILBOX_LIST = 2 * KIB
"""Characters of a From field that are parsed, in the writer's thread too (RFC 5322: 998 a line)."""

MAX_BOUNDARY = 256
"""Octets of a multipart boundary; RFC 2046 5.1.1 allows 70, some senders exceed it."""

MAX_PARAMETERS = 64
"""Parameters of one Content-Type or Content-Disposition; RFC 2231 pieces count one by one."""

MAX_BASE64_PIECES = 1_000
"""Separately padded pieces of one base64 body; some encoders pad each line."""

MAX_FILENAME = 255
"""Characters of an attachment's name: what common file systems take."""

MAX_HTML = 512 * KIB
"""Characters of HTML that are rendered for links and codes. Gmail clips mail at 102 KiB."""

MAX_LINK_TEXT = 512 * KIB
"""Characters of text that are searched for links."""

MAX_CODE_TEXT = 64 * KIB
"""Characters of text that are searched for codes: a code stands near the top."""

MAX_URL = 8 * KIB
"""Length of a link; longer ones don't work in browsers and servers (usual limit 8 KiB)."""

MAX_LINKS = 1_000
"""Links of one mail; a long newsletter has about 150."""

MAX_CODE_CANDIDATES = 2_000
"""Candidates for a code that are judged; a long account statement has about 500 numbers."""

MAX_KEPT_CANDIDATES = 60
"""Candidates of each kind that are shown, best first."""

MAX_CODES = 5
"""Codes returned for one mail."""

MAX_PROBLEMS = 50
"""Sentences about what was broken; after these the mail is known to be broken."""

MAX_SEARCHED = 65_536
"""Characters of text that searches look in: enough for a mail that people read."""

MAX_SNIPPET = 160
"""Characters of text that lists show: as many as fit into a line of a wide screen."""
