"""The workers of a Dask cluster as a place."""

import numpy as np
import pytest
from scipy.sparse import csr_array

da = pytest.importorskip(
    "dask.array", reason="dask is not installed; make test-extras installs it"
)

from bistochastic.places import place_of  # noqa: E402
from bistochastic.places.given_pairs import of_affinities  # noqa: E402
from bistochastic.places.tables import DenseCosts  # noqa: E402


@pytest.mark.parametrize("held", ["array", "parts of different widths"])
def test_costs_of_the_caller_arrive_whole(client, rng, held):
    n = 40
    A = rng.random((n, n)) * (rng.random((n, n)) < 0.1)
    A[3] = rng.random(n)  # one row is much longer than others
    A = csr_array(A + np.eye(n))
    costs = of_affinities(A, loops=True)
    if held == "array":
        costs = DenseCosts(np.where(A.toarray() > 0, -A.toarray(), np.inf))
    else:
        assert len(costs.parts) > 1
    X = da.from_array(rng.random((n, 2)), chunks=(15, 2))
    place = place_of(X)
    place.checked(X, lambda X: X, "euclidean")
    there = place.costs(costs)
    M = np.full((n, n), np.inf)
    for rows, columns, values in there.listed():
        kept = np.isfinite(values)
        i = np.broadcast_to(rows[:, None], columns.shape)
        M[i[kept], columns[kept]] = values[kept]
    np.testing.assert_array_equal(np.where(np.isfinite(M), -M, 0.0), A.toarray())
    assert place.costs(there) is there


def test_rows_are_fetched_by_their_numbers(client, rng):
    X = rng.random((50, 3))
    place = place_of(held := da.from_array(X, chunks=(20, 3)))
    data = place.checked(held, lambda X: X, "euclidean")
    index = np.array([0, 19, 20, 41, 49])
    np.testing.assert_array_equal(place.rows(data, index), X[index])
    V = place.vectors(data)
    assert place.of_vectors(V).shape == (50, 3)
    np.testing.assert_array_equal(np.asarray(V), X)


def test_the_norm_of_all_squared_distances(client, rng):
    from bistochastic.neighbors.exact import norm_of_costs, squared_distances
    from bistochastic.neighbors.points import Points

    X = 5 + rng.standard_normal((60, 4))
    place = place_of(held := da.from_array(X, chunks=(25, 4)))
    data = place.checked(held, lambda X: X, "euclidean")
    here = Points.of(X, "euclidean")
    wanted = np.linalg.norm(squared_distances(here))
    np.testing.assert_allclose(norm_of_costs(here), wanted, rtol=1e-12)
    there = place.norm_of_costs(place.points(data, "euclidean"))
    np.testing.assert_allclose(there, wanted, rtol=1e-12)
