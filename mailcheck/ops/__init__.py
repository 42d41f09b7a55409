"""Operation of the daemon: logs, metrics, a shell, and notifications to systemd."""
