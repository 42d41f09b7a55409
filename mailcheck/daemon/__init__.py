"""Services of the daemon: startup, listening, background work and orderly shutdown."""
