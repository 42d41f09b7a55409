"""Connections of line-based protocols: lines, TLS, timeouts, and limits of their number."""
