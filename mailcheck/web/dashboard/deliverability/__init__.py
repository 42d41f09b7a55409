"""Pages of deliverability tests."""
