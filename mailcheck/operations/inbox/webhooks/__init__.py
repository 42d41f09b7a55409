"""Webhooks of inboxes: managing, signing and delivering them."""
