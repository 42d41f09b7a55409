"""The client libraries: one file each, dependency-free, served by the daemon for download."""
