"""State that the daemon keeps in memory or in Redis: caches, limits, metrics and their keys."""
