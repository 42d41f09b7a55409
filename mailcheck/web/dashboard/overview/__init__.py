"""The first page of the dashboard."""
