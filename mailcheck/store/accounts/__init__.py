"""Accounts, keys, passwords, invitations and sessions as rows."""
