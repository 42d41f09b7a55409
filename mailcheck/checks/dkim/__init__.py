"""Which keys sign a domain's mail: DKIM key records (RFC 6376 3.6, RFC 8301, RFC 8463)."""
