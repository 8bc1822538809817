"""Rows in another order give the same partition, also where graphs are cut or joined.

Data have no ties, so that no number of a row may decide anything.
"""

import numpy as np
import pytest
from scipy.sparse import csr_array

from bistochastic import ANCMM
from bistochastic.cluster.exact_count import joined
from bistochastic.graph.components import by_size, numbered
from bistochastic.places.host.csr import Csr

CLOUD = np.random.default_rng(2).normal(size=(90, 4))
FEW = np.random.default_rng(0).normal(size=(24, 2))
LOOSE = {"penalty": 1e-8}  # it never pulls apart, so that all is done by cuts
FULL = {"min_cluster_size": 3, "n_neighbors": 6}  # all clusters have this size
OPTIONS = {
    "cut in equal halves": (CLOUD, 3, LOOSE | {"n_neighbors": 14}),
    "cut in equal halves, more neighbors": (CLOUD, 3, LOOSE | {"n_neighbors": 18}),
    "a huge penalty": (CLOUD, 3, {"penalty": 1e12, "n_neighbors": 10}),
    "equal sizes": (FEW, 8, FULL),
    "equal sizes, the paper's rows": (FEW, 8, FULL | {"refine": None}),
    "equal sizes, exact": (FEW, 8, FULL | {"graph_update": "exact"}),
    "equal sizes, exact, the paper's rows": (
        FEW, 8, FULL | {"graph_update": "exact", "refine": None},
    ),
    "two steps": (CLOUD, 3, {"max_iter": 2, "n_neighbors": 10}),
    "three neighbors": (CLOUD, 3, {"n_neighbors": 3, "refine": None}),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.filterwarnings("ignore:The eigensolver", "ignore:.*came out smaller")
def test_rows_in_another_order_give_the_same_partition(name):
    X, c, options = OPTIONS[name]
    labels = ANCMM(c, **options).fit(X).labels_
    for seed in range(100, 105):
        order = np.random.default_rng(seed).permutation(len(X))
        found = ANCMM(c, **options).fit(X[order]).labels_
        np.testing.assert_array_equal(found, numbered(labels[order]))


def test_of_components_of_one_size_the_loosest_comes_first():
    A = csr_array([[0.0, 3, 0, 0], [3, 0, 0, 0], [0, 0, 0, 2], [0, 0, 2, 0]])
    for order in ([0, 1, 2, 3], [2, 3, 0, 1]):
        S, labels = Csr(A[order][:, order]), np.array([0, 0, 1, 1])
        first = by_size(S, labels, np.array([2, 2]))[0]
        assert S.highest()[labels == first].max() == 2.0


def test_a_bridge_weighs_the_same_from_either_end():
    A = csr_array(np.diag([4.0, 2.0]))
    for pair in ((0, 1), (1, 0)):
        S = joined(Csr(A), [pair]).native().toarray()
        np.testing.assert_array_equal(S, [[4, 2], [2, 2]])
