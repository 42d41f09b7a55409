"""Limits for the content of one mail; content beyond them is only in the raw mail."""

KIB = 1024

MAX_PARTS = 1_000
"""Maximum number of MIME parts of one mail. Real digests and photo mails have less than 200."""

MAX_DEPTH = 50
"""Maximum depth of multiparts. Real mail stays below 10; each level is read once more."""

MAX_HEADER_FIELDS = 1_000
"""Maximum number of header fields of one entity. Mail through many lists with ARC has about 150."""

MAX_PART_FIELDS = 100
"""Maximum number of header fields of one part; about 12 have a meaning there (RFC 2045)."""

MAX_HEADER_BYTES = 256 * KIB
"""Maximum size of the header section of one entity. Postfix cuts at 100 KiB (header_size_limit)."""

MAX_SHORT_HEADER = 64 * KIB
"""Maximum number of bytes of a header in which From and Subject are searched without parsing."""

MAX_MAILBOX_LIST = 2 * KIB
"""Maximum number of characters of a From field that are parsed. This also runs in the writer's
thread; RFC 5322 limits a line to 998."""

MAX_BOUNDARY = 256
"""Maximum length of a multipart boundary; RFC 2046 5.1.1 allows 70, but some senders exceed it."""

MAX_PARAMETERS = 64
"""Maximum number of parameters of one field; each RFC 2231 continuation counts."""

MAX_BASE64_PIECES = 1_000
"""Maximum number of separately padded pieces of a base64 body; some encoders pad each line."""

MAX_FILENAME = 255
"""Maximum length of an attachment's name in characters, as in common file systems."""

MAX_HTML = 512 * KIB
"""Maximum number of characters of HTML that are searched for links and codes. Gmail clips mail at
102 KiB."""

MAX_LINK_TEXT = 512 * KIB
"""Maximum number of characters of text that are searched for links."""

MAX_CODE_TEXT = 64 * KIB
"""Maximum number of characters of text that are searched for codes, which are near the top."""

MAX_URL = 8 * KIB
"""Maximum length of a link; longer ones fail in browsers and servers (usual limit 8 KiB)."""

MAX_LINKS = 1_000
"""Maximum number of links of one mail; a long newsletter has about 150."""

MAX_CODE_CANDIDATES = 2_000
"""Maximum number of scored code candidates; a long account statement has about 500 numbers."""

MAX_KEPT_CANDIDATES = 60
"""Maximum number of shown candidates of each kind, best first."""

MAX_CODES = 5
"""Maximum number of codes of one mail."""

MAX_PROBLEMS = 50
"""Maximum number of sentences about errors in one mail."""

MAX_SEARCHED = 65_536
"""Maximum number of characters of text that searches use, which is enough for readable mail."""

MAX_SNIPPET = 160
"""Maximum number of characters of text in lists, which fill a line of a wide screen."""

REMEMBERED = 128
"""Size of the caches. Programs that send many mails use one author; types and encodings of parts
repeat as well."""

MAX_REMEMBERED = 128
"""Maximum length of a type or encoding whose parsed value is cached."""
