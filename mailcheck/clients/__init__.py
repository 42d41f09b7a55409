"""The client libraries: one file each, without dependencies, which the daemon serves."""
