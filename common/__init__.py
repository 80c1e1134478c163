"""What the numbered scripts share. The trace file is the border: torch before it, none after it."""
