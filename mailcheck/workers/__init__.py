"""Where blocking work runs: at once, in threads, or in a process of its own."""
