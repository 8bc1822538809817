"""Sparse data in every form that SciPy takes mean the same, and stay as they are."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from bistochastic import (
    ANCMM,
    CAN,
    CLR,
    DSDC,
    ERCAN,
    DoublyStochasticScaler,
    DoublyStochasticSpectral,
    adaptive_neighbors_graph,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 5)) + 3.0 * (np.arange(60) < 30)[:, None]


def twice(X):
    """Store each number as two halves."""
    n, d = X.shape
    columns = np.repeat(np.tile(np.arange(d), n), 2)
    ends = np.arange(0, 2 * n * d + 1, 2 * d)
    return csr_array((np.repeat(X.ravel() / 2, 2), columns, ends), shape=X.shape)


def backwards(X):
    """Store the columns of each row in descending order."""
    n, d = X.shape
    columns = np.tile(np.arange(d)[::-1], n)
    ends = np.arange(0, n * d + 1, d)
    return csr_array((X[:, ::-1].ravel(), columns, ends), shape=X.shape)


def with_long_indices(X):
    """Store indices in 64 bits."""
    S = csr_array(X)
    S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
    return S


def parts(S):
    return tuple(part.tobytes() for part in (S.data, S.indices, S.indptr))


@pytest.fixture(params=[twice, backwards, with_long_indices])
def stored(request):
    """Return sparse data, and look after the test whether they have changed."""
    S = request.param(X)
    before = parts(S)
    yield S
    assert parts(S) == before


@pytest.mark.parametrize("method", [ANCMM, CAN, CLR, ERCAN, DSDC])
def test_fits_of_sparse_points_are_those_of_dense_ones(method, stored):
    model = method(2).fit(stored)
    np.testing.assert_array_equal(model.labels_, method(2).fit(X).labels_)
    if hasattr(model, "predict"):
        np.testing.assert_array_equal(model.predict(stored), model.labels_)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
def test_graphs_of_sparse_points_are_those_of_dense_ones(metric, stored):
    sparse, dense = (adaptive_neighbors_graph(Y, 5, metric=metric) for Y in (stored, X))
    np.testing.assert_allclose(sparse.toarray(), dense.toarray(), atol=1e-9)


def test_given_affinities_stay_as_they_are():
    S = twice(np.exp(-((X[:, None, 0] - X[None, :, 0]) ** 2)))
    before = parts(S)
    DoublyStochasticSpectral(2, affinity="precomputed").fit(S)
    assert parts(S) == before


def test_rows_of_the_smallest_numbers_are_scaled_to_one():
    scaler = DoublyStochasticScaler().fit(np.ones((4, 4)))
    rows = scaler.transform(csr_array(np.full((4, 4), 1e-310)))
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=1e-12)


def test_memberships_of_a_point_with_hardly_any_weight_are_shares():
    A = np.kron(np.eye(2), np.ones((3, 3)))
    A[5, 3:5] = A[3:5, 5] = 1e-310
    options = {"metric": "affinity", "min_cluster_size": 1, "refine": None}
    shares = ANCMM(2, **options).fit(A).memberships(A).toarray()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


@pytest.mark.filterwarnings("ignore:.*not n_clusters", "ignore:.*came out smaller")
def test_memberships_take_their_own_data_where_the_graph_has_more_components():
    A = np.kron(np.eye(3), np.ones((3, 3)))
    options = {"metric": "affinity", "min_cluster_size": 4, "refine": None}
    shares = ANCMM(2, **options).fit(A).memberships(A)
    assert shares.shape == (9, 3)
