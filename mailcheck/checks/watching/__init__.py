"""What a watch knows of a domain or an address, and how two runs of it differ."""
