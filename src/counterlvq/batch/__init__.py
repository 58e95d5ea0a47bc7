"""Answers for many rows: how they are computed, confirmed and held."""
