"""How a mail is made: its header, its parts, its HTML, its links; and what big receivers ask."""
