"""Checks of a message's HTML: client support, accessibility, links. Run in child processes."""
