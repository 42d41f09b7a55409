"""Requests: one class each, which provides the parser, the schema and the descriptions."""
