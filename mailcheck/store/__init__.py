"""What must last: SQL stands here and nowhere else, behind one engine seam."""
