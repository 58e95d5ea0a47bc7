"""Experiments that are run once and whose results are kept."""
