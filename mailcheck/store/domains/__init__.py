"""The stores of reports and watches, and the local state of a daemon without Redis."""
