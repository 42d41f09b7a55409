"""Sender Policy Framework (RFC 7208): SPF records and the tree of records they include."""
