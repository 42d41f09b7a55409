"""What an answer means: parse, evaluate and score, one file or folder per mechanism; no reactor."""
