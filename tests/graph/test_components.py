"""Components of a graph, in the order of their sizes."""

import numpy as np
from scipy.sparse import csr_array

from bistochastic.graph.components import by_size
from bistochastic.places.host.csr import Csr


def test_of_components_of_one_size_the_loosest_comes_first():
    A = csr_array([[0.0, 3, 0, 0], [3, 0, 0, 0], [0, 0, 0, 2], [0, 0, 2, 0]])
    for order in ([0, 1, 2, 3], [2, 3, 0, 1]):
        S, labels = Csr(A[order][:, order]), np.array([0, 0, 1, 1])
        first = by_size(S, labels, np.array([2, 2]))[0]
        assert S.highest()[labels == first].max() == 2.0
