"""The JSON shapes of deliverability tests."""
