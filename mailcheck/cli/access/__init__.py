"""How commands access a daemon, a store, and the network."""
