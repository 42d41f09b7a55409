"""Checks of domains and IP addresses."""
