"""mailcheck checks whether mail will arrive, and shows developers the mail their software sends."""
