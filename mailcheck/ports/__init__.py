"""Protocols with several implementations, and the values that they exchange."""
