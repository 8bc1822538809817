"""The graph of adaptive neighbors: costs of edges in, rows of weights out."""
