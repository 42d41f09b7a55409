"""The JSON shapes of projects, keys, accounts and the audit log."""
