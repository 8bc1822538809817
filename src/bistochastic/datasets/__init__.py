"""Data made here, and the sets of the paper."""

from bistochastic.datasets.load import load

__all__ = ["load"]
