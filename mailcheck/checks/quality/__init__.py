"""Format of a mail: header, parts, HTML and links, and the rules of large receivers."""
