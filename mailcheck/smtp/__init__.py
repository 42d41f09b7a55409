"""The SMTP server: receives envelopes and messages (RFC 5321)."""
