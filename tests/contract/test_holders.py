"""Every holder speaks the verbs of core.protocols, and all say the same."""

import inspect

import numpy as np

from bistochastic.core.arrays import on_cpu
from bistochastic.core.protocols import Graph, Scores
from matrices import as_numpy, sparse_symmetric

VERBS = {
    name
    for protocol in (Graph, Scores)
    for name, member in inspect.getmembers(protocol, inspect.isfunction)
    if not name.startswith("_")
}


def test_every_verb_is_spoken(hold):
    S = hold(np.eye(2))
    missing = {verb for verb in VERBS if not callable(getattr(S, verb, None))}
    assert not missing
    assert (S.n, S.n_products) == (2, 0)


def test_vectors(hold, rng):
    S = hold(np.eye(4))
    np.testing.assert_array_equal(on_cpu(S.ones()), np.ones(4))
    values = rng.random(4)
    np.testing.assert_array_equal(on_cpu(S.vector(values)), values)


def test_products_are_right_and_counted(hold, rng):
    A = sparse_symmetric(rng, 9)
    S = hold(A)
    v, V = rng.random(9), rng.random((9, 3))
    np.testing.assert_allclose(on_cpu(S.apply(S.vector(v))), A @ v)
    np.testing.assert_allclose(on_cpu(S.apply(S.vector(V))), A @ V)
    assert S.n_products == 2


def test_scaled_is_DSD_symmetric_to_the_bit(hold, rng):
    A = sparse_symmetric(rng, 9)
    u = rng.random(9)
    S = hold(A)
    M = as_numpy(S.scaled(S.vector(u)).native())
    np.testing.assert_allclose(M, np.diag(u) @ A @ np.diag(u))
    assert (M == M.T).all()
    np.testing.assert_array_equal(as_numpy(S.native()), A)


def test_diagonal_shift_cut_part_and_pattern(hold, rng):
    A = sparse_symmetric(rng, 9)
    A[2, 2] = A[5, 5] = 0
    S = hold(A)
    np.testing.assert_array_equal(on_cpu(S.diagonal()), np.diag(A))
    shifted = as_numpy(S.shifted(0.5).native())
    np.testing.assert_allclose(shifted, A + 0.5 * np.eye(9))
    rows, columns = rng.integers(0, 3, (2, 9))
    kept = rows[:, None] == columns[None, :]
    np.testing.assert_array_equal(as_numpy(S.cut(rows, columns).native()), A * kept)
    index = np.array([0, 3, 4, 8])
    part = as_numpy(S.part(index).native())
    np.testing.assert_array_equal(part, A[np.ix_(index, index)])
    np.testing.assert_array_equal(S.pattern().toarray() > 0, A > 0)


def test_a_pattern_is_found_in_any_block_of_rows(hold, rng, monkeypatch):
    from bistochastic.backends import dense

    monkeypatch.setattr(dense, "BLOCK", 20)
    A = sparse_symmetric(rng, 9)
    np.testing.assert_array_equal(hold(A).pattern().toarray() > 0, A > 0)


def test_scores_and_what_is_made_of_them(hold, rng):
    A = sparse_symmetric(rng, 9)
    S = hold(A)
    K = S.log()
    on = A > 0
    with np.errstate(divide="ignore"):
        logs = np.log(A)
    np.testing.assert_allclose(on_cpu(K.highest()), logs.max(axis=1))
    np.testing.assert_allclose(K.spread(), logs[on].std())
    assert K.looped()
    a = rng.standard_normal(9)
    plus = np.where(on, 2.0 * np.where(on, logs, 0) + a[:, None] + a[None, :], -np.inf)
    P = K.exponential(2.0, K.vector(a))
    np.testing.assert_allclose(as_numpy(P.native()), np.exp(plus))
    np.testing.assert_allclose(K.dot(P), (np.exp(plus) * np.where(on, logs, 0)).sum())
    F = K.clipped(2.0, K.vector(a))
    clipped = np.maximum(plus, 0)
    assert 0 < (clipped > 0).sum() < on.sum()
    np.testing.assert_allclose(as_numpy(F.native()), clipped, atol=1e-15)
    np.testing.assert_allclose(F.sq_norm(), (clipped**2).sum())
    np.testing.assert_allclose(K.dot(F), (clipped * np.where(on, logs, 0)).sum())
    np.testing.assert_array_equal(as_numpy(F.indicator().native()), clipped > 0)
    np.testing.assert_allclose(
        as_numpy(F.entries(0.5).toarray()), clipped * (clipped > 0.5)
    )
    for made in (P, F):
        M = as_numpy(made.native())
        assert (M == M.T).all()
    raised = as_numpy(K.raised(K.vector(a)).native())
    kept = np.where(on, logs + a[:, None] + a[None, :], -np.inf)
    np.testing.assert_allclose(raised, np.maximum(kept, 0), atol=1e-15)


def test_a_missing_loop_is_noticed(hold):
    assert not hold(np.array([[0.0, 1.0], [1.0, 2.0]])).log().looped()
