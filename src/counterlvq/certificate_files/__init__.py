"""Certificate files: what was asked and proved, written down for others to check."""
