"""mailcheck: tells whether mail will arrive, and hands developers the mail their software sends."""
