"""ARC: what those who forwarded a mail say of it, sealed by each (RFC 8617); information only."""
