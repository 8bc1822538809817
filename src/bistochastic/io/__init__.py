"""Files in, labels out: tables and matrices, and models as arrays and JSON."""

from bistochastic.io.models import load, save
from bistochastic.io.reading import read_matrix, read_table
from bistochastic.io.table import Column, Table
from bistochastic.io.writing import write_graph, write_labels, write_summary

__all__ = [
    "Column",
    "Table",
    "load",
    "read_matrix",
    "read_table",
    "save",
    "write_graph",
    "write_labels",
    "write_summary",
]
