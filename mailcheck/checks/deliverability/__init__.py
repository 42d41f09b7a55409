"""What a receiver thinks of one mail, and what each finding costs."""
