"""What an operator has of the daemon: logs, metrics, a shell, and the word of systemd."""
