"""DNS blocklists (RFC 5782): the catalogue, queries, listings and self-tests."""
