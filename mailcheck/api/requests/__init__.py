"""Requests: one class each, from which readers, schemas and descriptions come."""
