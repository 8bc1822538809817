"""The machine itself: NumPy and SciPy, with compiled loops."""
