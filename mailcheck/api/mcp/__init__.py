"""What an agent reads."""
