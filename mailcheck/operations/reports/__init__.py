"""Reports of receivers: receiving, counting and showing them."""
