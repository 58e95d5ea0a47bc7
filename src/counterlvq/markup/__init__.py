"""HTML that needs nothing else: elements, the parts that pages share, and their looks."""
