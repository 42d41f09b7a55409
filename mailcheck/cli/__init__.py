"""The ``mailcheck`` command, a thin layer over the operations."""
