"""Doubles of what lies outside the process."""
