"""The nearest neighbors of points: exact, or most of them."""
