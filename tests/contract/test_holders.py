"""Every holder speaks the verbs of core.protocols, and all say the same."""

import inspect

import numpy as np
from array_api_compat import array_namespace

from bistochastic.core.arrays import on_cpu
from bistochastic.core.protocols import Costs, Graph, Rows, Scores
from bistochastic.graph.simplex import k_nearest, relaxed
from matrices import as_numpy, sparse_symmetric


def verbs(*protocols):
    return {
        name
        for protocol in protocols
        for name, member in inspect.getmembers(protocol, inspect.isfunction)
        if not name.startswith("_")
    }


VERBS = verbs(Graph, Scores)


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


def test_scaling_loses_no_entry_that_a_number_can_hold(hold, rng):
    """u_i u_j may leave the range although u_i s_ij u_j does not."""
    e = np.concatenate([rng.uniform(-180, -155, 6), rng.uniform(152, 170, 6)])
    u = 10.0**e
    wanted = rng.uniform(-100, 100, (12, 12))
    exponents = (wanted + wanted.T) / 2 - (e[:, None] + e[None, :])
    S = np.where(np.abs(exponents) < 300, 10.0 ** np.clip(exponents, -300, 300), 0.0)
    held = hold(S)
    M = as_numpy(held.scaled(held.vector(u)).native())
    wide = np.longdouble
    exact = np.asarray(u.astype(wide)[:, None] * S.astype(wide) * u.astype(wide), float)
    assert ((M > 0) == (S > 0)).all()
    assert (M == M.T).all()
    np.testing.assert_allclose(M, exact, rtol=1e-15)
    products = (e[:, None] + e[None, :])[S > 0]
    assert products.min() < -320
    assert products.max() > 310


def test_noise_is_that_of_the_generator(hold):
    S = hold(np.eye(5))
    blocks = [on_cpu(S.noise(np.random.default_rng(seed), 3)) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(blocks[0], blocks[1])
    np.testing.assert_array_equal(
        blocks[2], np.random.default_rng(2).standard_normal((5, 3))
    )


def test_large_noise_is_drawn_on_the_device(device, monkeypatch):
    import torch

    from bistochastic.places.torch_device import csr as torch_csr

    monkeypatch.setattr(torch_csr, "DRAWN", 0)
    S = torch_csr.TorchCsr(torch.eye(2000, device=device).double().to_sparse_csr())
    first, again, other = (
        S.noise(np.random.default_rng(seed), 4) for seed in (1, 1, 2)
    )
    assert first.device == S.native().device
    assert bool((first == again).all())
    assert not bool((first == other).any())
    assert abs(float(first.mean())) < 0.05
    assert abs(float(first.std()) - 1) < 0.05


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
    delta = rng.random(9)
    shifted = as_numpy(S.shifted(S.vector(delta)).native())
    np.testing.assert_allclose(shifted, A + np.diag(delta))
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
    from bistochastic.places.host import dense

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
    np.testing.assert_allclose(K.deviation(), logs[on].std())
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
    above = K.clipped(2.0, K.vector(a), 0.3)  # the others are not moved
    large = np.where(plus > 0.3, plus, 0)
    assert 0 < (large > 0).sum() < (clipped > 0).sum()
    np.testing.assert_allclose(as_numpy(above.native()), large, atol=1e-15)
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


def test_every_verb_of_costs_is_spoken(cost):
    C = cost(np.eye(3), 2)
    assert not {
        verb for verb in verbs(Costs, Rows) if not callable(getattr(C, verb, None))
    }
    assert C.n == 3


def some_costs(rng, n=9):
    """Draw symmetric costs with zeros on the diagonal and one pair that is barred."""
    D = rng.random((n, n))
    D = D + D.T
    np.fill_diagonal(D, 0)
    D[2, 5] = np.inf  # not symmetric: 2 is still a candidate of 5
    return D


def kept(D, m):
    """Say which are the m cheapest in each row."""
    return np.argsort(np.argsort(D, axis=1), axis=1) < m


def test_costs_and_the_weights_made_of_them(cost, rng):
    D, F, u = some_costs(rng), rng.random((9, 2)), rng.random(9)
    C = cost(D, 5)
    on = kept(D, 5)
    np.testing.assert_array_equal(on_cpu(C.reduce(k_sum)), on.sum(axis=1))
    m = np.where(on, D + 0.7 * ((F[:, None] - F[None]) ** 2).sum(-1), np.inf)
    M = C.plus(0.7, C.vector(F))
    rows = M.weigh(lambda part: k_nearest(part, 3))
    W = k_nearest(m, 3)
    np.testing.assert_allclose(M.dot(rows), (np.where(W > 0, m, 0) * W).sum())
    S = as_numpy(rows.symmetrized().native())
    np.testing.assert_allclose(S, (W + W.T) / 2, atol=1e-15)
    assert (S == S.T).all()
    v, scaled = C.vector(u), np.outer(u, u) * W
    np.testing.assert_allclose(rows.moved(v), ((scaled - W) ** 2).sum())
    np.testing.assert_allclose(M.dot(rows, v), (np.where(W > 0, m, 0) * scaled).sum())
    np.testing.assert_allclose(rows.sq_norm(), (W**2).sum())


def k_sum(part):
    """Count the candidates in each row."""
    xp = array_namespace(part)
    return xp.sum(xp.astype(xp.isfinite(part), xp.float64), axis=1)


def test_rules_get_the_entries_of_their_rows(cost, rng):
    D, a = some_costs(rng), rng.random(9)
    C = cost(D, 4)
    got = C.reduce(lambda part, b: b + 0 * k_sum(part), C.vector(a))
    np.testing.assert_allclose(on_cpu(got), a)
    rows = C.weigh(lambda part, b: k_nearest(part, 2) * b[:, None], C.vector(a))
    W = k_nearest(np.where(kept(D, 4), D, np.inf), 2) * a[:, None]
    S = as_numpy(rows.symmetrized().native())
    np.testing.assert_allclose(S, (W + W.T) / 2, atol=1e-15)


def test_rules_get_what_lies_beside(cost, rng):
    D, a = some_costs(rng), rng.random(9)
    C = cost(D, 4)
    rows = C.weigh(lambda part: k_nearest(part, 2))
    both = C.weigh(lambda part, b, w: w * b[:, None], C.vector(a), beside=[rows])
    W = k_nearest(np.where(kept(D, 4), D, np.inf), 2) * a[:, None]
    S = as_numpy(both.symmetrized().native())
    np.testing.assert_allclose(S, (W + W.T) / 2, atol=1e-15)


def test_scores_have_the_candidates_of_either_side(cost, rng):
    D = some_costs(rng)
    on = kept(D, 3)
    K = cost(D, 3).scores(2.0)
    least = np.minimum(D, D.T)
    wanted = np.where(on | on.T, np.exp(-least / 4), 0)
    made = K.exponential(1.0, 0 * K.ones())
    np.testing.assert_allclose(as_numpy(made.native()), wanted)


def test_weighted_norms(hold, rng):
    A, w = sparse_symmetric(rng, 9), rng.random(9)
    S = hold(A)
    wanted = (w[:, None] * A**2).sum()
    np.testing.assert_allclose(S.sq_norm(S.vector(w)), wanted)


def test_duplicates_do_not_push_a_point_out_of_its_own_candidates(cost):
    D = np.zeros((6, 6))
    rows = cost(D, 2).weigh(simplex_of_costs)
    loops = on_cpu(rows.symmetrized().diagonal())
    np.testing.assert_array_equal(loops, np.full(6, 0.5))


def simplex_of_costs(m):
    return relaxed(m, 1.0)
