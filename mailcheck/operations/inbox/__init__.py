"""What can be asked of an inbox."""
