"""The SMTP receiver: bytes on a socket to envelopes and raw messages (RFC 5321)."""
