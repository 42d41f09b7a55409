"""``mailcheck apply``: sets up projects as a file describes them."""
