"""Refinements of graphs, against their definitions."""

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from bistochastic import (
    marcus_mapping,
)
from bistochastic.graph.refine import (
    dimension,
    local_scales,
    nth_cost,
    triangles,
    unit_rows,
)
from matrices import as_numpy, sparse_symmetric


def test_the_dimension_around_points(rng):
    for d in (1, 2, 5):
        distances, _ = (
            NearestNeighbors(n_neighbors=15).fit(rng.random((4000, d))).kneighbors()
        )
        inverse = dimension(distances**2, loops=False)
        assert 1 / inverse.mean() == pytest.approx(d, rel=0.15)
    few = np.array([[0, 0, 1, 4, np.inf], [0, 2, 2, 2, 2], [0, 0, 0, 0, 0]])
    inverse = dimension(few, loops=True)
    np.testing.assert_allclose(inverse, [np.log(4) / 2, np.nan, np.nan])


def test_triangles_and_bridges_on_every_holder(hold, rng):
    A = sparse_symmetric(rng, 12)
    A = marcus_mapping(A).matrix
    S = hold(A)
    wanted = A * np.sqrt(A @ A) * (A > 0) + 1e-9 * np.eye(12)
    made = as_numpy(triangles(S).native())
    np.testing.assert_allclose(made, wanted, atol=1e-14)
    assert (made == made.T).all()
    B = np.zeros((12, 12))
    B[1, 4] = B[4, 1] = 0.3
    B[7, 2] = B[2, 7] = 0.1
    joined = as_numpy(S.joined(np.array([1, 7]), np.array([4, 2]), [0.3, 0.1]).native())
    np.testing.assert_allclose(joined, A + B, atol=1e-15)


def test_unit_rows_and_local_scales(rng):
    F = rng.standard_normal((5, 3))
    F[2] = 0
    np.testing.assert_allclose(
        np.linalg.norm(unit_rows(F), axis=1), [1, 1, 0, 1, 1], atol=1e-15
    )
    costs = np.sort(rng.random((4, 12)), axis=1)
    costs[:, 0] = 0
    np.testing.assert_allclose(nth_cost(costs, True), costs[:, 7])
    np.testing.assert_allclose(nth_cost(costs, False), costs[:, 6])
    assert local_scales(np.array([0.0, 4.0, 9.0])).tolist() == [2.0, 2.0, 3.0]
