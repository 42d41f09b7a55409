"""Accounts: their keys, sessions, passwords and limits."""
