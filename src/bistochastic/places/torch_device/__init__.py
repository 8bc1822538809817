"""A device of torch, such as a GPU."""
