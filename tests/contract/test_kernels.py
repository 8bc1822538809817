"""Compiled bodies give what the readable texts give."""

from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_array

from bistochastic import marcus_mapping
from bistochastic.core.recurrence import recurrence
from bistochastic.datasets.toy import planted_graph
from bistochastic.graph import components, simplex
from bistochastic.neighbors import descent, exact
from bistochastic.places import tables as costs
from bistochastic.places.host import (
    csr,
    dense,
    gathering,
    kernels,
    kernels_descent,
    kernels_entries,
    kernels_rows,
    kernels_tables,
    pattern_costs,
)
from bistochastic.places.host.csr import Csr
from bistochastic.scaling import linear_systems as systems
from bistochastic.scaling import matching
from bistochastic.spectrum.filtered import polynomial
from matrices import sparse_symmetric


def test_every_body_has_a_test_here():
    bodies = (
        kernels.ON_PATTERNS,
        kernels.ON_ROWS,
        kernels.ON_TABLES,
        kernels.ON_ENTRIES,
        kernels.ON_TABLE_ROWS,
        kernels.ON_ARRAYS,
    )
    assert {text for held in bodies for text in held} == {
        components.search,
        costs.distances,
        csr.halves,
        csr.supported,
        gathering.mates,
        gathering.gathered,
        costs.dot,
        costs.moved,
        simplex.first_weights,
        pattern_costs.penalties,
        pattern_costs.mirrored_mean,
        simplex.relaxed_rows,
        simplex.aggregated_rows,
        matching.greedy_matching,
        matching.maximum_matching,
        systems.conjugate_gradients,
        csr.product,
        recurrence,
        csr.weights,
        csr.three_term,
        csr.exponents,
        csr.positives,
        dense.positives,
        descent.offer_leaves,  # in tests/neighbors/test_descent.py, with the next two
        descent.offer_neighbors,
        descent.standing_in,
        exact.ranked,
    }


def test_conjugate_gradients(rng):
    A = sparse_symmetric(rng, 200, 0.05, spread=2.0)
    u = rng.uniform(0.5, 2, 200) / np.sqrt(A.sum(axis=1))
    r = u * (A @ u)
    b = rng.standard_normal(200)
    for accuracy, limit in [(0.1, 1000), (1e-6, 1000), (1e-12, 7)]:
        S, T = Csr(csr_array(A)), Csr(csr_array(A))
        text = systems.conjugate_gradients(S, u, r, b.copy(), accuracy, limit)
        body = kernels_rows.conjugate_gradients(T, u, r, b.copy(), accuracy, limit)
        np.testing.assert_allclose(body, text, rtol=1e-8, atol=1e-12)
        assert T.n_products == S.n_products
    exact = np.linalg.solve(np.diag(r) + u[:, None] * A * u, b)
    body = kernels_rows.conjugate_gradients(T, u, r, b.copy(), 1e-13, 1000)
    np.testing.assert_allclose(body, exact, rtol=1e-7, atol=1e-10)


def test_product_and_weights(rng):
    S = csr_array(sparse_symmetric(rng, 100))
    u, V = rng.random(100), rng.random((100, 3))
    np.testing.assert_allclose(
        kernels_rows.product(S, u), csr.product(S, u), rtol=1e-13
    )
    np.testing.assert_allclose(
        kernels_rows.product(S, V), csr.product(S, V), rtol=1e-13
    )
    np.testing.assert_array_equal(kernels_rows.weights(S, u), csr.weights(S, u))


def test_three_terms_of_a_block_of_rows(rng):
    S = csr_array(rng.random((6, 9)) * (rng.random((6, 9)) < 0.5))
    X, Y = rng.random((6, 8)), rng.random((9, 8))
    here, there = X.copy(), X.copy()
    csr.three_term(S, here, Y, 0.3, -0.2, 0.7)
    kernels_rows.three_term(S, there, Y, 0.3, -0.2, 0.7)
    np.testing.assert_allclose(here, 0.3 * (S @ Y) - 0.2 * Y[:6] + 0.7 * X)
    np.testing.assert_allclose(there, here, rtol=1e-13)


def test_blocks_of_vectors(rng):
    S = Csr(csr_array(sparse_symmetric(rng, 60)))
    Y = rng.random((60, 7))
    np.testing.assert_allclose(kernels_rows.product(S.native(), Y), S.native() @ Y)
    np.testing.assert_allclose(
        kernels_rows.product(S.native(), Y[:, ::2]), S.native() @ Y[:, ::2]
    )


@pytest.mark.parametrize(("accuracy", "rtol"), [(1e-7, 1e-9), (1e-5, 1e-4)])
def test_polynomials(rng, accuracy, rtol):
    S = Csr(csr_array(sparse_symmetric(rng, 60)))
    X = rng.random((60, 7))
    S = S.scaled(np.full(60, np.linalg.norm(S.native().toarray(), 2) ** -0.5))
    terms = -0.1, 0.9, 8, accuracy
    text = polynomial(S, X, S.native() @ X, *terms)
    T = np.polynomial.Chebyshev.basis(8)
    values, V = np.linalg.eigh(S.native().toarray())
    exact = V @ (T((values + 0.1) / 0.9)[:, None] * (V.T @ X)) / T(1.1 / 0.9)
    np.testing.assert_allclose(text, exact, rtol=1e-9, atol=1e-12)
    before, kept = S.n_products, X.copy()
    S.fast = lambda text: kernels_rows.recurrence
    body = polynomial(S, X, S.native() @ X, *terms)
    np.testing.assert_allclose(body, text, rtol=rtol, atol=rtol)
    assert body.dtype == np.float64
    assert S.n_products == before + 7
    np.testing.assert_array_equal(X, kept)


def test_tables(rng):
    n, m = 80, 7
    columns = np.array([rng.permutation(n)[:m] for _ in range(n)], dtype=np.int32)
    columns[:, 0] = np.arange(n)  # loops, and duplicates of these where drawn again
    columns = np.array([np.unique(row)[:5] for row in columns], dtype=np.int32)
    columns = np.array([rng.permutation(row) for row in columns])
    F = rng.random((n, 4))
    rows = np.arange(n)
    np.testing.assert_allclose(
        kernels_tables.distances(F, rows, columns), costs.distances(F, rows, columns)
    )
    pattern = costs.Pattern(columns)
    for _ in range(3):
        values = rng.standard_normal(columns.shape)  # negative ones do not count
        made = kernels_tables.halves(pattern, values)
        text = csr.halves(pattern, values)
        assert made.has_canonical_format
        np.testing.assert_array_equal(made.toarray(), text.toarray())
        assert made.nnz == text.nnz
        assert (made != made.T).nnz == 0


@pytest.mark.parametrize("degree", [0.0, 0.5, 1.0, 1.5, 4.0])
def test_components(rng, degree):
    n = 300
    i, j = rng.integers(0, n, (2, int(degree * n / 2)))
    A = csr_array((np.ones(i.size), (i, j)), shape=(n, n))
    A = csr_array(A + A.T)
    A.sort_indices()
    S = Csr(A)
    np.testing.assert_array_equal(kernels_rows.search(S), components.search(S))


def test_exponents_and_positives(rng):
    A = sparse_symmetric(rng, 100)
    K = csr_array(A)
    K.data = rng.standard_normal(K.nnz)
    a = rng.standard_normal(100) - 0.5
    for omega in (0.0, 1.0, 30.0):
        text, body = csr.exponents(K, omega, a), kernels_rows.exponents(K, omega, a)
        np.testing.assert_allclose(body, text, rtol=1e-14)
        for ours, theirs in zip(
            kernels_rows.positives(K, omega, a, 0.1),
            csr.positives(K, omega, a, 0.1),
            strict=True,
        ):
            np.testing.assert_array_equal(ours, theirs)
            assert ours.dtype == theirs.dtype


def test_positives_of_an_array(rng):
    K = rng.standard_normal((50, 50))
    K = K + K.T
    a = rng.standard_normal(50) - 3
    for omega in (0.0, 1.0, 3.0):
        for made in (K, np.asfortranarray(K)):
            text, body = (
                f(made, omega, a, 0.1)
                for f in (dense.positives, kernels_tables.dense_positives)
            )
            assert text is not None
            for ours, theirs in zip(body, text, strict=True):
                np.testing.assert_array_equal(ours, theirs)
                assert ours.dtype == theirs.dtype
            assert dense.positives(made, omega, a + 9) is None
            assert kernels_tables.dense_positives(made, omega, a + 9) is None


def test_matchings(rng):
    greedy, maximum = (
        kernels.ON_PATTERNS[text]
        for text in (matching.greedy_matching, matching.maximum_matching)
    )
    for n in (1, 5, 60, 300):
        A = rng.random((n, n)) < 0.75 / n
        A = csr_array((A | A.T).astype(float))
        given = A.indptr, A.indices, A.diagonal() > 0
        start = matching.greedy_matching(*given)
        np.testing.assert_array_equal(greedy(*given), start)
        for ours, theirs in zip(
            maximum(A.indptr, A.indices, start),
            matching.maximum_matching(A.indptr, A.indices, start),
            strict=True,
        ):
            np.testing.assert_array_equal(ours, theirs)


def test_mirrored(rng):
    A = sparse_symmetric(rng, 60)
    S = csr_array(A)
    assert kernels_rows.mirrored(S.indptr, S.indices, S.data)
    for _ in range(50):
        B = A.copy()
        i, j = rng.integers(0, 60, 2)
        B[i, j] = np.nextafter(B[i, j], 9) if rng.random() < 0.5 else 0.0
        B = csr_array(B)
        expected = (B.toarray() == B.toarray().T).all()
        assert kernels_rows.mirrored(B.indptr, B.indices, B.data) == expected
    lower, upper = csr_array(np.tril(A)), csr_array(np.triu(A))
    assert not kernels_rows.mirrored(lower.indptr, lower.indices, lower.data)
    assert not kernels_rows.mirrored(upper.indptr, upper.indices, upper.data)


@pytest.mark.parametrize("method", ["auto", "newton", "damped"])
def test_small_and_large_paths_agree(method, monkeypatch):
    S, _ = planted_graph(3000, 3)
    monkeypatch.setattr(csr, "COMPILED", 10**9)
    plain = marcus_mapping(S, method=method)
    monkeypatch.setattr(csr, "COMPILED", 0)
    fast = marcus_mapping(S, method=method)
    np.testing.assert_allclose(fast.matrix.data, plain.matrix.data, atol=1e-9)
    assert fast.n_products == plain.n_products


def test_a_large_matrix_that_is_not_symmetric_is_refused(monkeypatch):
    from bistochastic.core.errors import NotSymmetricError

    monkeypatch.setattr(csr, "COMPILED", 0)
    S, _ = planted_graph(500, 3)
    S.data[7] *= 2
    with pytest.raises(NotSymmetricError):
        marcus_mapping(S)


def on_pattern(rng, n=80):
    """Return costs on a symmetric pattern, some of them infinite."""
    S = csr_array(sparse_symmetric(rng, n))
    pattern = pattern_costs.GraphPattern(S.indptr, S.indices)
    values = rng.standard_normal(S.nnz)
    values[(rng.random(S.nnz) < 0.1) & (pattern.rows != S.indices)] = np.inf
    return pattern_costs.PatternCosts(pattern, values)


def test_penalties_on_a_pattern(rng):
    costs = on_pattern(rng)
    F = rng.standard_normal((80, 3))
    given = costs.pattern, costs.values, 0.3, F
    np.testing.assert_allclose(
        kernels_entries.penalties(*given), pattern_costs.penalties(*given), atol=1e-13
    )


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e8])
def test_rows_on_a_pattern(rng, size):
    costs = on_pattern(rng)
    indptr = costs.pattern.indptr
    m = pattern_costs.PatternCosts(costs.pattern, size * costs.values)
    text = m.weigh(partial(simplex.relaxed_rows, alpha=0.5)).values
    body = kernels_entries.relaxed_rows(indptr, m.values, alpha=0.5)
    np.testing.assert_allclose(body, text, atol=1e-12)
    alphas = rng.uniform(0.1, 2, 80)
    text = m.weigh(simplex.relaxed_rows, alphas).values
    body = kernels_entries.relaxed_rows(indptr, m.values, alphas)
    np.testing.assert_allclose(body, text, atol=1e-12)
    np.testing.assert_allclose(np.add.reduceat(body, indptr[:-1]), 1.0)


def test_rows_of_aggregates_on_a_pattern(rng):
    costs = on_pattern(rng)
    pairs = rng.integers(1, 9, costs.values.size).astype(float)
    sizes = rng.integers(1, 30, 80).astype(float)
    beside = [pattern_costs.PatternCosts(costs.pattern, pairs)]
    rule = partial(simplex.aggregated_rows, alpha=0.5)
    text = costs.weigh(rule, sizes, beside=beside).values
    body = kernels_entries.aggregated_rows(
        costs.pattern.indptr, costs.values, sizes, pairs, alpha=0.5
    )
    np.testing.assert_allclose(body, text, atol=1e-10)
    sums = np.add.reduceat(body, costs.pattern.indptr[:-1])
    np.testing.assert_allclose(sums, sizes)


def test_means_on_a_pattern(rng):
    costs = on_pattern(rng)
    text = pattern_costs.mirrored_mean(costs.pattern, costs.values.clip(max=9.0))
    body = kernels_entries.mirrored_mean(costs.pattern, costs.values.clip(max=9.0))
    same_csr(body, text)
    assert csr.mirrored(body)


def same_csr(here, there):
    np.testing.assert_array_equal(here.indptr, there.indptr)
    np.testing.assert_array_equal(here.indices, there.indices)
    np.testing.assert_allclose(here.data, there.data, rtol=1e-13)


def test_common_neighbors(rng):
    S = csr_array(sparse_symmetric(rng, 90, 0.1))
    body = kernels_entries.supported(S)
    same_csr(body, csr.supported(S))
    assert csr.mirrored(body)


def test_mates_and_sums_of_groups(rng):
    S = csr_array(sparse_symmetric(rng, 90, 0.1))
    sizes, free = rng.integers(1, 6, 90).astype(float), rng.random(90) < 0.7
    np.testing.assert_array_equal(
        kernels_entries.mates(S, sizes, free, 7.0),
        gathering.mates(S, sizes, free, 7.0),
    )
    groups = np.unique(rng.integers(0, 30, 90), return_inverse=True)[1]
    given = S, groups, int(groups.max()) + 1
    body, text = kernels_entries.gathered(*given), gathering.gathered(*given)
    same_csr(gathering.symmetric(body), gathering.symmetric(text))
    W = S.toarray() * rng.random(S.shape)
    W[:, 3] = 0.0  # no longer symmetric, neither weights nor pattern
    W = csr_array(W)
    body = gathering.symmetric(kernels_entries.gathered(W, *given[1:]))
    P = np.eye(given[2])[groups]
    np.testing.assert_allclose(body.toarray(), P.T @ (W + W.T).toarray() @ P / 2)


def test_ranked_neighbors(rng):
    X = rng.integers(0, 4, (300, 5)).astype(float)  # ties, and duplicates
    columns = np.array([rng.choice(300, 30, replace=False) for _ in range(120)])
    for kind in (np.float64, np.float32):
        given = X[:120].astype(kind), X.astype(kind), columns
        for body, text in zip(
            kernels_descent.ranked(*given), exact.ranked(*given), strict=True
        ):
            np.testing.assert_array_equal(body, text)
    Y = rng.standard_normal((300, 7))
    columns, costs = kernels_descent.ranked(Y[:120], Y, given[2])
    true = ((Y[:120, None] - Y[columns]) ** 2).sum(axis=2)
    np.testing.assert_allclose(costs, true, rtol=1e-13)
    assert (np.diff(costs, axis=1) >= 0).all()


def test_rows_of_tables(rng):
    m = np.sort(rng.random((50, 12)), axis=1)
    m[:5] = m[:5, ::-1]  # not in order
    m[5:8, :9] = 0.25  # duplicates
    m[8, 4:7] = m[8, 4]  # a tie at the last one
    for k in (4, 8):
        np.testing.assert_allclose(
            kernels_tables.first_weights(m, k=k),
            simplex.first_weights(m, k),
            atol=1e-14,
        )
    m[10:, 9:] = np.inf
    for alphas in (np.full(50, 0.5), rng.uniform(0.1, 2, 50)):
        text = simplex.relaxed_rows(m, alphas)
        np.testing.assert_allclose(
            kernels_tables.relaxed_rows(m, alphas), text, atol=1e-13
        )
    text = simplex.relaxed_rows(m, 0.7)
    body = kernels_tables.relaxed_rows(m, alpha=0.7)
    np.testing.assert_allclose(body, text, atol=1e-13)


def test_sums_over_tables(rng):
    m, weights = rng.random((50, 12)), rng.random((50, 12)) - 0.2
    rows, columns = rng.permutation(80)[:50], rng.integers(0, 80, (50, 12))
    u = rng.random(80)
    m[weights <= 0] = np.inf
    there = rows, columns, u
    np.testing.assert_allclose(
        kernels_tables.dot(m, weights, *there), costs.dot(m, weights, *there)
    )
    np.testing.assert_allclose(
        kernels_tables.moved(weights, *there), costs.moved(weights, *there)
    )


def test_rows_with_many_ties_come_to_an_end(rng):
    # rounding of theta brought dropped entries back, for ever
    m = (
        rng.integers(0, 4, (20_000, 30))
        / 3.0
        * rng.choice([0.1, 0.3, 0.7], (20_000, 1))
    )
    body = kernels_tables.relaxed_rows(m, alpha=0.05)
    np.testing.assert_allclose(body, simplex.relaxed_rows(m, 0.05), atol=1e-12)
    ends = np.arange(20_001) * 30
    sizes, pairs = np.full(20_000, 0.7), np.ones(m.size)
    body = kernels_entries.aggregated_rows(ends, m.ravel(), sizes, pairs, alpha=0.05)
    np.testing.assert_allclose(body.reshape(m.shape).sum(axis=1), 0.7)
