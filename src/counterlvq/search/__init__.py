"""Searches for one answer. They trust no solver, and know no class of the user's language."""
