"""Oracles of the mapping, on every holder and by every method."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from bistochastic import marcus_mapping
from bistochastic.core.arrays import on_cpu
from bistochastic.core.run import Status
from bistochastic.scaling.alternating import alternating
from bistochastic.scaling.fixed_point import damped, fixed_point
from bistochastic.scaling.marcus import auto, marcus
from bistochastic.scaling.newton import newton
from conftest import HOLDERS
from matrices import (
    EQUATION_3,
    PATH,
    as_numpy,
    row_error,
    sparse_symmetric,
    total_support,
)

CONVERGING = ("auto", "newton", "damped", "alternating")


def last(steps, passes):
    for _ in range(passes):
        u, _ = next(steps)
    return on_cpu(u)


def mapped(S, method="auto", tol=1e-12, **settings):
    done = marcus(S, S.ones(), method=method, tol=tol, **settings)
    assert done.status is Status.CONVERGED, done.status
    return as_numpy(S.scaled(done.value).native())


@pytest.mark.parametrize("method", CONVERGING)
@pytest.mark.parametrize(("a", "b", "d"), [(1, 2, 16), (3, 1e-3, 0.2), (1e5, 7, 1e-4)])
def test_two_points_have_the_closed_form_of_oracle_1(hold, method, a, b, d):
    p = np.sqrt(a * d) / (np.sqrt(a * d) + b)
    M = mapped(hold([[a, b], [b, d]]), method)
    np.testing.assert_allclose(M, [[p, 1 - p], [1 - p, p]], atol=1e-9)


@pytest.mark.parametrize("method", CONVERGING)
def test_M_of_EPE_is_P_oracle_2(hold, method, rng):
    P = mapped(hold(sparse_symmetric(rng, 30)), "newton", tol=1e-14)
    E = np.diag(np.exp(2 * rng.standard_normal(30)))
    np.testing.assert_allclose(mapped(hold(E @ P @ E), method), P, atol=1e-9)


@pytest.mark.parametrize("method", CONVERGING)
def test_patterns_of_ones_have_the_limits_of_oracle_3(hold, method):
    n = 6
    np.testing.assert_allclose(mapped(hold(np.ones((n, n))), method), 1 / n)
    loopless = np.ones((n, n)) - np.eye(n)
    np.testing.assert_allclose(mapped(hold(loopless), method), loopless / (n - 1))
    blocks = np.zeros((n, n))
    blocks[:2, :2] = blocks[2:, 2:] = 1
    expected = blocks / blocks.sum(axis=1)
    np.testing.assert_allclose(mapped(hold(blocks), method), expected)
    swap = np.array([[0, 7.0], [7.0, 0]])
    np.testing.assert_allclose(mapped(hold(swap), method), swap / 7)


def test_the_equation_3_matrix_has_no_scaling_and_the_run_says_so_oracle_4(hold):
    for method, ended in [
        ("damped", Status.STALLED),
        ("newton", Status.STALLED),
        ("auto", Status.STALLED),
        ("alternating", Status.STALLED),
    ]:
        S = hold(EQUATION_3)
        done = marcus(S, S.ones(), method=method, tol=1e-10)
        assert done.status in (ended, Status.OVERFLOW), method
        assert S.n_products < 30_000


def test_corollary_2_cycles_with_a_constant_for_each_component_oracle_5(hold):
    S = np.zeros((6, 6))
    S[:3, :3] = PATH
    S[3:, 3:] = 5 * PATH + 1
    steps = fixed_point(hold(S), hold(S).ones())
    u, w = last(steps, 200), last(steps, 1)
    ratio = w / u
    np.testing.assert_allclose(ratio[:3], ratio[0], rtol=1e-9)
    np.testing.assert_allclose(ratio[3:], ratio[3], rtol=1e-9)
    assert abs(ratio[0] - ratio[3]) > 0.1
    mean = np.sqrt(u * w)
    np.testing.assert_allclose(mean * (S @ mean), 1, rtol=1e-12)


def test_corollary_2_ends_with_the_status_that_says_it_cycles(hold):
    S = hold(PATH)
    done = marcus(S, S.ones(), method="fixed_point", tol=1e-10)
    assert done.status is Status.CYCLED
    assert S.n_products < 500


def test_corollary_2_holds_where_its_iteration_settles(hold):
    P = np.array([[0.5, 0.5], [0.5, 0.5]])
    S = hold(P)
    done = marcus(S, S.ones(), method="fixed_point", tol=1e-12)
    assert done.status is Status.CONVERGED


def test_alternating_reaches_the_fixed_point_of_corollary_2(hold):
    S = hold(PATH)
    u = last(alternating(S, S.ones()), 60)
    np.testing.assert_allclose(u * (PATH @ u), 1.0, rtol=1e-12)


def test_damped_is_the_degree_iteration_of_equation_2_kept_as_a_vector(hold, rng):
    K = sparse_symmetric(rng, 15)
    S = hold(K)
    steps = damped(S, S.ones())
    for _ in range(10):
        u = last(steps, 1)
        np.testing.assert_allclose(u[:, None] * as_numpy(S.native()) * u, K, rtol=1e-10)
        D = np.diag(1 / np.sqrt(K.sum(axis=1)))
        K = D @ K @ D


def test_every_damped_step_lowers_the_potential(hold, rng):
    K = sparse_symmetric(rng, 20, spread=2.0)
    S = hold(K)
    steps = damped(S, S.vector(np.exp(3 * rng.standard_normal(20))))
    values = []
    for _ in range(30):
        u = last(steps, 1)
        values.append(0.5 * u @ K @ u - np.log(u).sum())
    assert (np.diff(values) <= 1e-9).all()


@pytest.mark.parametrize("size", [1.0, 10.0, 60.0])
def test_newton_converges_from_any_start(hold, rng, size):
    for loops in (True, False):
        K = sparse_symmetric(rng, 25, 0.5, spread=2.0, loops=loops)
        S = hold(K)
        start = S.vector(np.exp(size * rng.uniform(-1, 1, 25)))
        done = marcus(S, start, method="newton", tol=1e-10)
        assert done.status is Status.CONVERGED
        u = on_cpu(done.value)
        np.testing.assert_allclose(u * (K @ u), 1.0, atol=1e-9)


def test_newton_copes_with_a_bipartite_component(hold, rng):
    B = np.exp(rng.standard_normal((6, 6)))
    S = hold(np.block([[np.zeros((6, 6)), B], [B.T, np.zeros((6, 6))]]))
    for method in ("newton", "auto", "damped"):
        M = mapped(S, method, tol=1e-10)
        assert row_error(M) < 1e-10


def test_all_converging_methods_and_all_holders_agree(hold, rng):
    for loops in (True, False):
        S = sparse_symmetric(rng, 40, 0.3, loops=loops)
        reference = mapped(HOLDERS["numpy"](S), "damped", tol=1e-13)
        for method in CONVERGING:
            np.testing.assert_allclose(mapped(hold(S), method), reference, atol=1e-9)


def test_row_sums_may_differ_from_one(hold, rng):
    K = sparse_symmetric(rng, 20)
    m = rng.uniform(0.1, 10, 20)
    for method in CONVERGING:
        S = hold(K)
        done = marcus(S, S.ones(), S.vector(m), method=method, tol=1e-10)
        u = on_cpu(done.value)
        np.testing.assert_allclose(u * (K @ u), m, rtol=1e-9)


def test_a_warm_start_at_the_solution_costs_one_product(hold, rng):
    K = sparse_symmetric(rng, 20)
    for method in ("auto", "newton", "damped"):
        S = hold(K)
        u = marcus(S, S.ones(), method=method, tol=1e-12).value
        again = hold(K)
        assert marcus(again, u, method=method, tol=1e-10).n_iter == 1
        assert again.n_products == 1


def test_auto_leaves_the_damped_map_where_that_is_slow(hold):
    n = 60  # a chain with a faint diagonal is nearly bipartite
    K = 1e-3 * np.eye(n) + np.eye(n, k=1) + np.eye(n, k=-1)
    used = {}
    for method in ("auto", "newton", "damped"):
        S = hold(K)
        done = marcus(S, S.ones(), method=method, tol=1e-8)
        assert done.status is Status.CONVERGED
        used[method] = S.n_products
    assert used["auto"] <= 1.3 * min(used["newton"], used["damped"])
    assert used["damped"] > 5 * used["auto"]


def test_auto_stays_with_the_damped_map_where_that_is_fast(hold):
    K = np.eye(20) + 0.001
    S = hold(K)
    done = marcus(S, S.ones(), method="auto", tol=1e-8)
    plain = hold(K)
    marcus(plain, plain.ones(), method="damped", tol=1e-8)
    assert done.status is Status.CONVERGED
    assert S.n_products == plain.n_products


def test_generators_go_on_after_the_solution(hold):
    S = hold(PATH)
    for steps in (
        auto(S, S.ones(), 1.0, 1e-8),
        newton(S, S.ones()),
        damped(S, S.ones()),
        alternating(S, S.ones()),
    ):
        u = last(steps, 80)
        np.testing.assert_allclose(u * (PATH @ u), 1.0, rtol=1e-10)


@given(S=total_support())
def test_M_is_idempotent_symmetric_and_keeps_the_pattern(S):
    M = marcus_mapping(S).matrix
    assert (M == M.T).all()
    assert ((M > 0) == (S > 0)).all()
    assert row_error(M) <= 1e-10
    np.testing.assert_allclose(marcus_mapping(M).matrix, M, atol=1e-9)


@given(S=total_support(), exponent=st.floats(-280, 280))
def test_multiplying_S_leaves_M_and_divides_D_by_the_root(S, exponent):
    factor = 10.0**exponent
    plain, scaled = marcus_mapping(S), marcus_mapping(factor * S)
    np.testing.assert_allclose(scaled.matrix, plain.matrix, atol=1e-9)
    np.testing.assert_allclose(
        scaled.scaling * np.sqrt(factor), plain.scaling, rtol=1e-6
    )


@given(S=total_support(), seed=st.integers(0, 2**32 - 1))
def test_M_of_a_permuted_matrix_is_M_permuted(S, seed):
    p = np.random.default_rng(seed).permutation(len(S))
    there = marcus_mapping(S[np.ix_(p, p)]).matrix
    np.testing.assert_allclose(there, marcus_mapping(S).matrix[np.ix_(p, p)], atol=1e-9)


@given(S=total_support(), seed=st.integers(0, 2**32 - 1))
def test_M_of_EPE_is_P(S, seed):
    P = marcus_mapping(S).matrix
    e = 10.0 ** np.random.default_rng(seed).uniform(-3, 3, len(S))
    again = marcus_mapping(e[:, None] * P * e[None, :]).matrix
    np.testing.assert_allclose(again, P, atol=1e-8)


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
@pytest.mark.parametrize("seed", [80, 100, 153, 223, 488])
def test_edges_stay_where_the_product_of_two_factors_leaves_the_range(kind, seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(3, 9)
    e = rng.uniform(-190, 150, n)
    mask = rng.random((n, n)) < 0.4
    mask = mask | mask.T | (rng.random() < 0.3) * np.eye(n, dtype=bool)
    w = rng.uniform(-120, 0, (n, n))
    w = (w + w.T) / 2 - (e[:, None] + e)
    S = np.where(mask & (abs(w) < 298), 10.0 ** np.clip(w, -299, 299), 0)
    result = marcus_mapping(kind(S))
    M, u = as_numpy(result.matrix), result.scaling.astype(np.longdouble)
    assert result.converged
    assert (M == M.T).all()
    wanted = np.asarray(u[:, None] * S * u, dtype=float)
    assert ((M > 0) == (wanted > 0)).all()
    np.testing.assert_allclose(M, wanted, rtol=1e-14)


FAR = {
    "large": lambda rng: np.full(20, 1e100),
    "small": lambda rng: np.full(20, 1e-100),
    "largest": lambda rng: np.full(20, 1e308),
    "mixed": lambda rng: 10.0 ** rng.uniform(-300, 300, 20),
}


@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("method", CONVERGING)
@pytest.mark.parametrize("unit", [1e-90, 1.0, 1e90])
def test_a_start_is_a_hint_and_a_far_one_does_no_harm(far, method, unit, rng):
    S = unit * sparse_symmetric(rng, 20)
    plain = marcus_mapping(S, method=method)
    result = marcus_mapping(S, method=method, initial=FAR[far](rng))
    assert plain.converged
    assert result.converged
    np.testing.assert_allclose(result.matrix, plain.matrix, atol=1e-8)


def test_a_far_start_in_single_precision_does_no_harm(rng):
    S = (1e10 * sparse_symmetric(rng, 20)).astype(np.float32)
    for far in FAR.values():
        assert marcus_mapping(S, initial=far(rng)).converged


def test_a_start_that_leads_nowhere_is_left_for_ones(hold, rng):
    K = sparse_symmetric(rng, 20)
    for far in (1e300, 1e-300):
        S = hold(K)
        done = marcus(S, far * S.ones(), method="auto", tol=1e-10)
        assert done.status is Status.CONVERGED
        assert done.n_iter < 40


def test_a_far_start_and_a_limit_give_numbers_and_an_honest_status(rng):
    S = 1e90 * sparse_symmetric(rng, 20)
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        result = marcus_mapping(S, initial=np.full(20, 1e120), max_iter=2)
    assert result.status is Status.LIMIT
    assert np.isfinite(result.matrix).all()
    assert row_error(result.matrix) == pytest.approx(result.residual)
