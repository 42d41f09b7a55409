"""The stores: all SQL, on top of an engine."""
