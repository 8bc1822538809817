"""Holders of matrices: the verbs of `core.protocols` on each kind of storage."""
