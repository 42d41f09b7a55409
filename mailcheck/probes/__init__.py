"""Connections to hosts that a user or a mail can choose, all through one guarded dialer."""
