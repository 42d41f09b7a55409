"""Pages of domain checks, blocklist checks, watches and receivers' reports."""
