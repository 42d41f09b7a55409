"""What a command's exit status says."""

EXIT_FINE, EXIT_PROBLEM, EXIT_USAGE, EXIT_UNDETERMINED = 0, 1, 2, 3
