"""The ``mailcheck`` command: a thin skin over the operations."""
