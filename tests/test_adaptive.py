"""The graph of adaptive neighbors, without a clusterer."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from bistochastic import (
    ANCMM,
    InputError,
    adaptive_neighbors_graph,
)
from matrices import row_error


def test_the_graph_alone():
    X, _ = make_blobs(200, random_state=0)
    S = adaptive_neighbors_graph(X, 12)
    assert row_error(S.toarray()) < 1e-9
    assert (S != S.T).nnz == 0
    first = ANCMM(
        1, n_neighbors=12, exact=False, refine=None, min_cluster_size=1, max_iter=1
    )
    first.fit(X)
    np.testing.assert_allclose(S.toarray(), first.affinity_matrix_.toarray(), atol=1e-7)
    for bad in (1, 200, "many"):
        with pytest.raises(InputError, match="n_neighbors"):
            adaptive_neighbors_graph(X, bad)
