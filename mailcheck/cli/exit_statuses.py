"""The exit statuses of commands."""

EXIT_FINE, EXIT_PROBLEM, EXIT_USAGE, EXIT_UNDETERMINED = 0, 1, 2, 3
EXIT_INTERRUPTED = 130
"""The status of shells for a program that Ctrl-C ended: 128 and the number of SIGINT."""
