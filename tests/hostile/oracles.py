"""What is true of a matrix or a partition, by plain NumPy and SciPy."""

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching


def dense(M):
    """Return a matrix of any kind as an array, in its own numbers."""
    return M.toarray() if issparse(M) else np.asarray(M)


def row_error(P, wanted=1.0, relative=True):
    """Return the largest error of the row sums; infinite if one is not a number."""
    sums = dense(P).astype(np.longdouble).sum(axis=1)
    error = np.abs(sums - wanted) / (wanted if relative else 1.0)
    error = np.where(np.isfinite(error), error, np.inf)
    return float(np.max(error, initial=0.0))


def parts(A):
    """Return the number of connected components by positive entries, and labels."""
    edges = csr_array(A)
    edges = csr_array((edges.data > 0, edges.indices, edges.indptr), shape=edges.shape)
    edges.eliminate_zeros()
    return connected_components(edges, directed=False)


def partition(labels):
    """Return labels numbered by first appearance."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def held(M):
    """Return all bytes that an input holds, to see whether they were changed."""
    if issparse(M):
        if M.format == "lil":
            return repr((M.rows.tolist(), M.data.tolist()))
        if M.format == "dok":
            return repr(sorted(M.items()))
        names = ("data", "indices", "indptr", "offsets", "row", "col")
        return b"|".join(
            np.asarray(getattr(M, name)).tobytes() for name in names if hasattr(M, name)
        )
    if hasattr(M, "to_numpy"):
        return M.to_numpy().tobytes() + repr((M.index, M.columns)).encode()
    return repr(M) if isinstance(M, list) else np.asarray(M).tobytes()


def matched(A):
    """Return how many rows of a pattern can each have a column of their own."""
    return int(np.sum(maximum_bipartite_matching(csr_array(A)) >= 0))


def kind_of_support(A, rng, most=80):
    """Return "none", "partial", "total" and how sure that is.

    An entry lies on a positive diagonal if what is left without its row and column has
    a perfect matching. Of many entries a sample is looked at: "total" is then not sure.
    """
    A = np.asarray(A) > 0
    n = len(A)
    if matched(A) < n:
        return "none", True
    entries = np.argwhere(np.triu(A))
    sure = len(entries) <= most
    if not sure:
        entries = entries[rng.permutation(len(entries))[:most]]
    if all(on_diagonal(A, i, j) for i, j in entries):
        return "total", sure
    return "partial", True


def on_diagonal(A, i, j):
    """Tell whether an entry lies on a positive diagonal."""
    rest = np.delete(np.delete(A, i, axis=0), j, axis=1)
    return rest.size == 0 or matched(rest) == len(rest)
