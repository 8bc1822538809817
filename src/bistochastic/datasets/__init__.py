"""Data made here, and the sets of the paper."""
