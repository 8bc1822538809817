"""Rows of weights against a general optimizer, each other, and their equations."""

import array_api_strict
import numpy as np
import pytest
from scipy.optimize import minimize

from bistochastic.core.arrays import on_cpu
from bistochastic.graph.simplex import (
    k_nearest,
    largest_alpha,
    relaxed,
    simplex,
    simplex_of_entries,
)
from conftest import need


@pytest.fixture(params=["numpy", "array_api_strict", "torch"])
def make(request):
    """Return a function that makes an array of one library."""
    if request.param == "torch":
        need("torch")
        import torch

        return torch.asarray
    return {"numpy": np.asarray, "array_api_strict": array_api_strict.asarray}[
        request.param
    ]


def costs(rng, n=8, m=12):
    """Draw costs without ties, the point itself in column 0."""
    d = rng.random((n, m)) * 3
    d[:, 0] = 0.0
    return d


def test_the_projection_is_the_nearest_point_of_the_simplex(make, rng):
    v = rng.standard_normal((6, 5)) * np.array([[0.1], [1], [5], [1], [1], [1]])
    made = on_cpu(simplex(make(v)))
    np.testing.assert_allclose(made.sum(axis=1), 1)
    for row, point in zip(v, made, strict=True):
        found = minimize(
            lambda s, row=row: ((s - row) ** 2).sum(),
            np.full(5, 0.2),
            bounds=[(0, 1)] * 5,
            constraints={"type": "eq", "fun": lambda s: s.sum() - 1},
            options={"ftol": 1e-14},
        )
        np.testing.assert_allclose(point, found.x, atol=1e-6)


def test_large_numbers_and_no_candidates(make):
    v = np.array([[1e15, 1e15, -np.inf], [-1e9, -np.inf, -np.inf], [0.1, 0.2, 0.3]])
    made = on_cpu(simplex(make(v)))
    expected = [[0.5, 0.5, 0], [1, 0, 0], [0.7 / 3, 1 / 3, 1.3 / 3]]
    np.testing.assert_allclose(made, expected)


def test_rows_given_entry_by_entry(rng):
    values = rng.standard_normal((6, 9)) * np.array([[0.01], [1], [10], [1], [1], [1]])
    values[3] += 1e9
    rows = np.repeat(np.arange(6), 9)
    made = simplex_of_entries(rows, values.ravel(), 8).reshape(6, 9)
    np.testing.assert_allclose(made.sum(axis=1), 1, atol=1e-12)
    values[3] -= 1e9
    ordered = -np.sort(-values, axis=1)  # the textbook rule, by sorting
    means = (ordered.cumsum(axis=1) - 1) / np.arange(1, 10)
    size = (ordered > means).sum(axis=1)
    textbook = np.maximum(values - means[np.arange(6), size - 1][:, None], 0)
    np.testing.assert_allclose(made, textbook, atol=1e-6)
    np.testing.assert_allclose(made, simplex(values), atol=1e-6)


def test_the_closed_form_is_the_projection_at_that_alpha(make, rng):
    """Oracle 6: Eq. (18) solves Eq. (15), with exactly k neighbors."""
    m = costs(rng)
    for k in (1, 3, 7, 11):
        alpha = on_cpu(largest_alpha(make(m), k))
        rows = on_cpu(k_nearest(make(m), k))
        assert ((rows > 0).sum(axis=1) == k).all()
        np.testing.assert_allclose(rows.sum(axis=1), 1)
        again = on_cpu(relaxed(make(m), make(alpha[:, None])))
        np.testing.assert_allclose(again, rows, atol=1e-12)


def test_equation_19_is_the_range_of_k_neighbors(rng):
    m = costs(rng)
    ordered = np.sort(m, axis=1)
    for k in (2, 5):
        upper = largest_alpha(m, k)
        lower = k / 2 * ordered[:, k - 1] - ordered[:, :k].sum(axis=1) / 2
        for alpha, number in (
            (upper, k), (lower + 1e-9, k), (upper + 1e-9, k + 1), (lower, k - 1),
        ):  # fmt: skip
            rows = relaxed(m, alpha[:, None])
            assert ((rows > 1e-12).sum(axis=1) == number).all()


def test_ties_leave_fewer_neighbors_and_duplicates_share(make):
    m = np.array([[0.0, 1, 1, 1, 2], [0, 0, 0, 0, 5], [3, 3, 3, 3, np.inf]])
    rows = on_cpu(k_nearest(make(m), 3))
    np.testing.assert_allclose(rows[0], [1, 0, 0, 0, 0])
    np.testing.assert_allclose(rows[1], [0.25, 0.25, 0.25, 0.25, 0])
    np.testing.assert_allclose(rows[2], [0.25, 0.25, 0.25, 0.25, 0])
    np.testing.assert_array_equal(on_cpu(largest_alpha(make(m), 3)), [1 / 2, 0, 0])


def test_the_relaxed_rows_minimize_their_objective(rng):
    m = costs(rng)
    rows = relaxed(m, 0.4)
    value = (m * rows).sum(axis=1) + 0.4 * (rows**2).sum(axis=1)
    for _ in range(200):
        other = rng.dirichlet(np.ones(12), 8)
        assert (value <= (m * other).sum(axis=1) + 0.4 * (other**2).sum(axis=1)).all()
