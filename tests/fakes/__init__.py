"""Test doubles for everything outside the process."""
