"""Tables that do not fit into memory: record batches, and folders that are filled exactly once."""
