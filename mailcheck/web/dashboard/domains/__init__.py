"""Pages of the domain and blocklist checks."""
