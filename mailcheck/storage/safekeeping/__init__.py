"""A store as a whole: backed up, put back, checked, copied to another engine."""
