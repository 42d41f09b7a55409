"""Every option: what it means, how it is read and what it rules out."""
