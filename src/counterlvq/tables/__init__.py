"""The user's table: what its columns are, and how it becomes numbers and a table again."""
