"""Pages of the inbox."""
