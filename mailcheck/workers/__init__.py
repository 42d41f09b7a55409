"""Workers for blocking work: at once, in threads, or in child processes."""
