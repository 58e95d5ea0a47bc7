"""The user's words: costs, constraints, targets, and the coordinates that they are stated in."""
