"""Facts of a watched domain or address, and the comparison of two runs."""
