"""What the daemon does by itself: it starts, listens, tidies up and stops in order."""
