"""DMARC records and the tree walk that finds them (RFC 9989, RFC 9990)."""
