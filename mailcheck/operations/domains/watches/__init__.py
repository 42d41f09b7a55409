"""Domains and addresses that are looked at again and again."""
