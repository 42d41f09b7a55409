"""DKIM signatures and key records, and ARC (RFC 6376, RFC 8301, RFC 8463, RFC 8617)."""
