"""The JSON of deliverability tests."""
