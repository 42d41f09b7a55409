"""Values of domains: names, watches, and reports from receivers."""
