"""Watched domains and addresses, which are checked regularly."""
