"""What can be asked of deliverability tests."""
