"""The theory is closed under coarsening: docs/theory/coarse.md."""

from functools import partial

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from bistochastic import marcus_mapping
from bistochastic.core.arrays import on_cpu
from bistochastic.graph.aggregates import aggregates, matched
from bistochastic.graph.simplex import aggregated_rows, relaxed_rows
from bistochastic.places.host.csr import Csr
from bistochastic.spectrum.ky_fan import ky_fan
from matrices import sparse_symmetric


def graph(rng, n=60, density=0.15):
    A = sparse_symmetric(rng, n, density)
    A = A.toarray() if hasattr(A, "toarray") else np.asarray(A)
    return marcus_mapping(csr_array(A + 0.1 * np.eye(n)), tol=1e-13).matrix


def indicators(groups):
    return np.eye(groups.max() + 1)[groups]


def test_sums_over_aggregates_have_their_sizes_as_row_sums(hold, rng):
    S = graph(rng).toarray()
    (held,) = aggregates(Csr(csr_array(S)), [20])
    P = indicators(held.groups)
    coarse = hold(S).gathered(held.groups, held.sizes.size)
    found = coarse.entries(0.0).toarray()
    np.testing.assert_allclose(found, P.T @ S @ P, rtol=1e-6)
    np.testing.assert_allclose(found.sum(axis=1), held.sizes, rtol=1e-6)
    np.testing.assert_array_equal(found, found.T)


def test_the_mapping_with_sizes_is_unique(rng):
    S = graph(rng)
    (held,) = aggregates(Csr(S), [20])
    coarse = Csr(S).gathered(held.groups, held.sizes.size).native()
    D = np.diag(rng.uniform(0.1, 10, held.sizes.size))
    mapped = marcus_mapping(csr_array(D @ coarse @ D), marginals=held.sizes, tol=1e-12)
    np.testing.assert_allclose(mapped.matrix.toarray(), coarse.toarray(), rtol=1e-8)


def test_rows_of_aggregates_solve_the_restricted_problem(rng):
    m, pairs = rng.standard_normal((1, 6)), rng.integers(1, 9, (1, 6)).astype(float)
    size = np.array([7.0])
    found = aggregated_rows(m, size, pairs, 0.5)[0]
    value = lambda t: np.sum(m[0] * t + 0.5 * t**2 / pairs[0])  # noqa: E731
    best = minimize(
        value,
        np.full(6, 7 / 6),
        bounds=[(0, None)] * 6,
        constraints={"type": "eq", "fun": lambda t: t.sum() - 7.0},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(found.sum(), 7.0)
    assert value(found) <= best.fun + 1e-9
    np.testing.assert_allclose(found, best.x, atol=1e-4)


def test_rows_of_single_points_are_those_of_equation_15(rng):
    m = rng.standard_normal((5, 8))
    ones = np.ones((5, 8))
    np.testing.assert_allclose(
        aggregated_rows(m, ones[:, 0], ones, 0.5), relaxed_rows(m, 0.5), atol=1e-14
    )


def test_without_a_penalty_rows_are_the_sums_of_rows(rng):
    S = graph(rng)
    (held,) = aggregates(Csr(S), [20])
    n = held.sizes.size
    sums = Csr(S).gathered(held.groups, n).native().toarray()
    pairs = Csr(S).indicator().gathered(held.groups, n).native().toarray()
    m = np.where(pairs > 0, -sums / np.where(pairs > 0, pairs, 1), np.inf)
    rule = partial(aggregated_rows, alpha=0.5)
    found = rule(m, held.sizes, np.where(pairs > 0, pairs, 1.0))
    np.testing.assert_allclose(found, sums, atol=1e-10)


def test_eigenvalues_of_aggregates_are_no_less(rng):
    S = graph(rng)
    (held,) = aggregates(Csr(S), [25])
    coarse = Csr(S).gathered(held.groups, held.sizes.size)
    number, labels = connected_components(coarse.native(), directed=False)
    assert number == 1
    found = ky_fan(coarse, 4, labels, sizes=held.sizes)
    W = np.diag(held.sizes)
    there = eigh(W - coarse.native().toarray(), W, eigvals_only=True)[:4]
    here = np.linalg.eigvalsh(np.eye(60) - S.toarray())[:4]
    np.testing.assert_allclose(found.values, there, atol=1e-10)
    assert (there >= here - 1e-12).all()
    np.testing.assert_allclose(found.F.T @ W @ found.F, np.eye(4), atol=1e-10)


@pytest.mark.parametrize("n", [500, 2000])
def test_eigenvectors_of_many_aggregates_by_filters(rng, n):
    S = graph(rng, n, 8 / n)
    sizes = rng.integers(1, 9, n).astype(float)
    S = marcus_mapping(S, marginals=sizes, tol=1e-12).matrix
    number, labels = connected_components(S, directed=False)
    found = ky_fan(Csr(S), number + 3, labels, sizes=sizes)
    W = np.diag(sizes)
    gram = found.F.T @ W @ found.F
    np.testing.assert_allclose(gram, np.eye(number + 3), atol=1e-8)
    there = eigh(W - S.toarray(), W, eigvals_only=True)[: number + 3]
    np.testing.assert_allclose(found.values, there, atol=1e-8)


def test_aggregates_keep_the_components(rng):
    S = graph(rng, 300, 0.008)
    number, labels = connected_components(S, directed=False)
    assert number > 1
    (held,) = aggregates(Csr(S), [60])
    coarse = Csr(S).gathered(held.groups, held.sizes.size).native()
    found, there = connected_components(coarse, directed=False)
    assert found == number
    pairs = np.unique(np.stack([labels, there[held.groups]]), axis=1)
    assert pairs.shape[1] == number


def test_no_aggregate_is_much_larger_than_others(rng):
    S = graph(rng, 1000, 0.01)
    (held,) = aggregates(Csr(S), [50])
    assert held.sizes.sum() == 1000
    assert held.sizes.max() <= 4 * 1000 / 50
    np.testing.assert_array_equal(np.bincount(held.groups), held.sizes)


def test_levels_are_nested(rng):
    S = graph(rng, 500, 0.02)
    fine, coarse = aggregates(Csr(S), [100, 25])
    assert fine.sizes.size <= 100
    assert coarse.sizes.size <= 25
    parents = np.unique(np.stack([fine.groups, coarse.groups]), axis=1)
    assert parents.shape[1] == fine.sizes.size


def test_pairs_are_heaviest_neighbors_in_any_order(hold, rng):
    S = graph(rng).toarray()
    groups, number = matched(hold(S), hold(S).ones(), 2.0)
    groups = on_cpu(groups)
    assert np.bincount(groups, minlength=number).max() == 2
    order = rng.permutation(60)
    other, _ = matched(hold(S[np.ix_(order, order)]), hold(S).ones(), 2.0)
    other = on_cpu(other)
    pairs = np.unique(np.stack([groups[order], other]), axis=1)
    assert pairs.shape[1] == number
