"""Is an address or a domain on a blocklist: catalogue, questions, answers (RFC 5782)."""
