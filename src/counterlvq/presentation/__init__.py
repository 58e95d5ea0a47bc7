"""How numbers are shown to people."""
