"""Where mail for a domain goes: MX records (RFC 5321 5.1), null MX (RFC 7505)."""
