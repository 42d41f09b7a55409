"""The stores of accounts, keys, passwords, invitations, sessions and webhooks."""
