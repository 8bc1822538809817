"""A fitted model: how new points may be stored, and who may ask it at once."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, is_dataclass

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix, issparse
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from bistochastic import ANCMM, CAN, CLR, ERCAN, InputError


@pytest.mark.parametrize("method", [ANCMM, CAN, CLR, ERCAN])
@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cosine", "manhattan"])
def test_points_may_be_stored_otherwise_than_those_of_fit(method, metric):
    rng = np.random.default_rng(0)
    X = rng.random((60, 8)) * (rng.random((60, 8)) > 0.5) + 0.1
    X[:30, :4] += 9
    for stored, other in ((np.asarray, csr_matrix), (csr_array, np.asarray)):
        model = method(2, metric=metric).fit(stored(X))
        for name in ("predict", "predict_proba"):
            ask = getattr(model, name)
            np.testing.assert_allclose(ask(other(X)), ask(stored(X)), atol=1e-12)


def test_memberships_and_approximation_take_points_stored_otherwise():
    X = load_wine().data[:, :5]
    for stored, other in ((np.asarray, csr_matrix), (csr_array, np.asarray)):
        model = ANCMM(3, n_neighbors=10).fit(stored(X))
        shares = [model.memberships(kind(X)).toarray() for kind in (stored, other)]
        np.testing.assert_allclose(*shares, atol=1e-12)
        gaps = [model.approximation(kind(X)).gap for kind in (stored, other)]
        np.testing.assert_allclose(*gaps, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("method", [ANCMM, CAN, CLR, ERCAN])
def test_a_metric_that_cannot_compare_sparse_rows_is_refused_by_name(method):
    X = csr_array(np.eye(20) + 1.0)
    with pytest.raises(InputError, match=r"metric='chebyshev' cannot compare"):
        method(2, metric="chebyshev").fit(X)


def test_methods_of_one_model_in_many_threads_agree():
    X = scale(load_wine().data)
    model = ANCMM(3, n_neighbors=10).fit(X)
    names = ("memberships", "approximation", "predict_proba") * 20
    alone = {name: _plain(getattr(model, name)(X)) for name in names}
    state = {*vars(model)}
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda name: _plain(getattr(model, name)(X)), names)
        for name, value in zip(names, found, strict=True):
            np.testing.assert_array_equal(value, alone[name])
    assert {*vars(model)} == state


def _plain(value):
    if is_dataclass(value):
        return np.array(astuple(value))
    return value.toarray() if issparse(value) else value


@pytest.mark.parametrize("metric", ["affinity", "precomputed"])
def test_memberships_know_the_pairs_of_their_fit_again(metric):
    constant = np.ones((60, 60)) - (metric == "precomputed") * np.eye(60)
    model = ANCMM(2, metric=metric).fit(constant)
    assert model.memberships(constant).shape == (60, 2)
    rng = np.random.default_rng(0)
    other = constant * (1 + 0.1 * rng.random((60, 60)))
    with pytest.raises(InputError, match="X is not the data of `fit`"):
        model.memberships(other / 2 + other.T / 2)
