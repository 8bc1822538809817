"""Rows in another order give the same partition, also where graphs are cut or joined.

Data have no ties, so that no number of a row may decide anything.
"""

import numpy as np
import pytest

from bistochastic import ANCMM
from bistochastic.graph.components import numbered

CLOUD = np.random.default_rng(2).normal(size=(90, 4))
FEW = np.random.default_rng(0).normal(size=(24, 2))
FORTY = np.random.default_rng(0).normal(size=(40, 2))
LOOSE = {"penalty": 1e-8}  # it never pulls apart, so that all is done by cuts
HARD = {"penalty": 1e3}  # it leaves nothing but loops, and bridges
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
    "bridges only, equal ways to cut": (
        FORTY, 13, {"min_cluster_size": 2, "n_neighbors": 6, "refine": None} | HARD,
    ),
    "bridges only, equal eigenvalues": (
        FORTY, 12, {"min_cluster_size": 2, "n_neighbors": 8, "refine": "triangles"}
        | HARD,
    ),
    "no loops, equal ways to cut": (
        FEW, 10, LOOSE | {"min_cluster_size": 2, "n_neighbors": 10, "refine": "local"}
        | {"self_neighbor": False},
    ),
    "two steps": (CLOUD, 3, {"max_iter": 2, "n_neighbors": 10}),
    "three neighbors": (CLOUD, 3, {"n_neighbors": 3, "refine": None}),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.filterwarnings("ignore:The eigensolver", "ignore:.*came out smaller")
@pytest.mark.filterwarnings("ignore:.*had no total support")
def test_rows_in_another_order_give_the_same_partition(name, thorough):
    X, c, options = OPTIONS[name]
    labels = ANCMM(c, **options).fit(X).labels_
    for seed in range(100, 105 if thorough else 101):
        order = np.random.default_rng(seed).permutation(len(X))
        found = ANCMM(c, **options).fit(X[order]).labels_
        np.testing.assert_array_equal(found, numbered(labels[order]))
