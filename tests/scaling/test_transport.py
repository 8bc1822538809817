"""Eqs. (24)-(28): the plan, its theorem, and its limits."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment, minimize
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from bistochastic import InputError, Status, SupportError, entropic_plan, marcus_mapping
from bistochastic.scaling import transport
from conftest import need
from matrices import (
    EQUATION_3,
    SUPPORT_ONLY,
    as_numpy,
    row_error,
    sparse_symmetric,
    total_support,
)

OMEGAS = (1e-3, 0.1, 1.0, 10.0, 100.0)


def problems(rng, number=50):
    """Draw dense and sparse matrices of several sizes and spreads."""
    for t in range(number):
        n = int(rng.integers(2, 40))
        yield sparse_symmetric(rng, n, (1.0, 0.3)[t % 2], spread=rng.uniform(0.1, 4))


def test_at_omega_one_the_plan_is_the_marcus_mapping(hold, rng):
    for S in problems(rng):
        graph = hold(S)
        log_S = graph.log()
        done = transport.plan(log_S, 1.0, tol=1e-11)
        assert done.status is Status.CONVERGED
        P = as_numpy(log_S.exponential(1.0, done.value).native())
        M = marcus_mapping(S, tol=1e-12).matrix
        np.testing.assert_allclose(P, M, atol=1e-9)
        assert (P == P.T).all()


@pytest.mark.parametrize("omega", [0.05, 1.0, 3.0])
def test_plans_agree_with_POT(omega, rng):
    need("ot", "POT")
    import ot

    for S in problems(rng):
        S = np.maximum(S, 1e-2) ** min(1.0, 1 / omega)  # what POT can solve
        ones = np.ones(len(S))
        theirs = ot.sinkhorn(
            ones, ones, -np.log(S), 1 / omega, method="sinkhorn_log",
            stopThr=1e-11, numItermax=100_000,
        )  # fmt: skip
        ours = entropic_plan(S, omega=omega)
        np.testing.assert_allclose(ours.plan, theirs, atol=1e-8)
        cost = (theirs * -np.log(S)).sum()
        np.testing.assert_allclose(ours.cost, cost, rtol=1e-7, atol=1e-7)


def test_no_other_plan_is_cheaper(rng):
    """A general optimizer over the doubly stochastic matrices finds the same."""
    S = sparse_symmetric(rng, 4, density=1.0)
    C = -np.log(S)

    def objective(x):
        P = x.reshape(4, 4)
        return (P * C).sum() + (P * np.log(np.maximum(P, 1e-300))).sum() / 2.5

    sums = [
        {"type": "eq", "fun": lambda x, i=i, k=k: x.reshape(4, 4).sum(k)[i] - 1}
        for i, k in itertools.product(range(4), (0, 1))
    ][:-1]
    found = minimize(
        objective, np.full(16, 0.25), bounds=[(1e-12, 1)] * 16, constraints=sums,
        options={"ftol": 1e-14, "maxiter": 1000},
    )  # fmt: skip
    ours = entropic_plan(S, omega=2.5)
    np.testing.assert_allclose(ours.plan, found.x.reshape(4, 4), atol=1e-5)
    np.testing.assert_allclose(ours.value, found.fun, rtol=1e-8)


@pytest.mark.parametrize("omega", OMEGAS)
def test_every_omega_on_dense_and_sparse(omega, rng):
    for S in problems(rng, 20):
        for given_S in (S, csr_array(S)):
            result = entropic_plan(given_S, omega=omega)
            assert result.converged
            P = as_numpy(result.plan)
            assert row_error(P) <= 1.1e-10
            assert (P == P.T).all()
            assert (P[S == 0] == 0).all()


def test_equation_26_cost_and_entropy(rng):
    S = sparse_symmetric(rng, 15)
    for omega in OMEGAS:
        for scale in (1.0, 1e-120):  # the second is rescaled inside
            result = entropic_plan(scale * S, omega=omega)
            phi, P = result.potential, result.plan
            on = P > 0
            exponent = -1 - omega * (phi[:, None] + phi[None, :])
            with np.errstate(divide="ignore"):
                logs = np.log(S) + np.log(scale)
            np.testing.assert_allclose(
                np.log(P[on]), (exponent + omega * logs)[on], rtol=1e-9, atol=1e-9
            )
            cost = -(P[on] * logs[on]).sum()
            entropy = -(P[on] * np.log(P[on])).sum()
            np.testing.assert_allclose(result.cost, cost, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(result.entropy, entropy, rtol=1e-7, atol=1e-8)
            assert result.value == result.cost - result.entropy / omega


def test_powers_that_leave_the_range_of_numbers(rng):
    """S ** omega would be 0 or infinite; the plan is not."""
    S = sparse_symmetric(rng, 30, spread=50.0)
    with np.errstate(over="ignore"):
        assert not np.isfinite(S**20).all()
    result = entropic_plan(S, omega=20.0, tol=1e-9)
    assert result.converged
    assert row_error(result.plan) <= 1e-8


def test_large_omega_gives_a_cheapest_assignment(rng):
    """The bipartite form, so that assignments need not be symmetric."""
    R = rng.random((12, 12)) + 0.01
    zero = np.zeros((12, 12))
    P = entropic_plan(np.block([[zero, R], [R.T, zero]]), omega=10_000.0).plan
    rows, columns = linear_sum_assignment(-np.log(R))
    np.testing.assert_array_equal(P[:12, 12:].argmax(axis=1), columns)
    assert P[rows, 12 + columns].min() > 0.99


def test_the_limit_mixes_plans_that_are_equally_cheap():
    S = np.ones((3, 3)) - np.eye(3)
    np.testing.assert_allclose(entropic_plan(S, omega=1e6).plan, S / 2)


def test_small_omega_spreads_over_the_pattern(rng):
    S = sparse_symmetric(rng, 12)
    P = entropic_plan(S, omega=1e-9).plan
    np.testing.assert_allclose(P, marcus_mapping((S > 0) * 1.0).matrix, atol=1e-7)


def test_with_support_only_the_plan_is_the_pruned_limit():
    """What the paper leaves out: Eq. (26) needs total support, Eq. (24) does not."""
    result = entropic_plan(SUPPORT_ONLY, omega=0.7)
    np.testing.assert_allclose(result.plan, [[0, 1], [1, 0]], atol=1e-12)
    assert result.support.kind == "partial"
    assert result.dropped.size == 0
    near = entropic_plan(SUPPORT_ONLY + np.diag([0.0, 1e-12]), omega=0.7)
    np.testing.assert_allclose(near.plan, result.plan, atol=1e-3)
    assert entropic_plan(SUPPORT_ONLY, unsupported="regularize").shift > 0


def test_without_support_there_is_no_plan(rng):
    with pytest.raises(SupportError, match="no support"):
        entropic_plan(EQUATION_3)
    shifted = entropic_plan(EQUATION_3, unsupported="regularize")
    assert shifted.shift > 0
    assert row_error(shifted.plan) < 1e-9
    S = sparse_symmetric(rng, 10)
    S[4] = S[:, 4] = 0
    for kind in (np.asarray, csr_array):
        result = entropic_plan(kind(S), omega=2.0, unsupported="prune")
        assert result.dropped.tolist() == [4]
        assert result.potential[4] == np.inf
        P = as_numpy(result.plan)
        np.testing.assert_allclose(P.sum(axis=1), np.arange(10) != 4, atol=1e-9)
        rest = np.delete(np.arange(10), 4)
        alone = entropic_plan(S[np.ix_(rest, rest)], omega=2.0)
        np.testing.assert_allclose(P[np.ix_(rest, rest)], alone.plan, atol=1e-9)
        np.testing.assert_allclose(result.cost, alone.cost)
        np.testing.assert_allclose(result.entropy, alone.entropy)


def test_marginals(rng):
    S = sparse_symmetric(rng, 10)
    m = rng.uniform(0.5, 2, 10)
    result = entropic_plan(S, omega=3.0, marginals=m)
    np.testing.assert_allclose(result.plan.sum(axis=1), m, rtol=1e-9)
    ours = entropic_plan(S, marginals=m).plan
    np.testing.assert_allclose(ours, marcus_mapping(S, marginals=m).matrix, atol=1e-9)


@given(total_support(), st.floats(0.01, 30))
def test_properties(S, omega):
    result = entropic_plan(S, omega=omega)
    P = result.plan
    assert row_error(P) <= 1e-9
    assert (P == P.T).all()
    order = np.argsort(S.sum(axis=1))
    again = entropic_plan(S[np.ix_(order, order)], omega=omega).plan
    np.testing.assert_allclose(again, P[np.ix_(order, order)], atol=1e-8)
    scaled = entropic_plan(7.0 * S, omega=omega)
    np.testing.assert_allclose(scaled.plan, P, atol=1e-8)


def test_single_precision_is_computed_in_double(rng):
    S = sparse_symmetric(rng, 20).astype(np.float32)
    result = entropic_plan(S, omega=50.0)
    assert result.plan.dtype == np.float32
    assert result.converged


def test_the_matrix_of_the_caller_is_left_alone(rng):
    S = csr_array(sparse_symmetric(rng, 20))
    before = S.copy()
    result = entropic_plan(S, omega=2.0)
    assert not np.shares_memory(result.plan.indices, S.indices)
    result.plan.indices[:] = 0
    assert (S != before).nnz == 0


@pytest.mark.parametrize("omega", [0, -1, np.inf, np.nan, "1", None, 10**400])
def test_omega_must_be_positive(omega):
    with pytest.raises(InputError, match="omega"):
        entropic_plan(np.eye(2), omega=omega)


def test_omegas_at_the_ends_of_the_range(rng):
    S = sparse_symmetric(rng, 6)
    assert entropic_plan(S, omega=1e-310).converged
    with pytest.raises(InputError, match="no digits"):
        entropic_plan(S, omega=1e20)
    assert entropic_plan(np.ones((3, 3)), omega=1e300).converged


def test_a_limit_is_a_status_and_a_warning(rng):
    with pytest.warns(ConvergenceWarning, match="Raise max_iter. Or lower omega"):
        result = entropic_plan(sparse_symmetric(rng, 20), omega=5.0, max_iter=1)
    assert result.status is Status.LIMIT
    assert "TransportResult" in repr(result)
    assert str(result).startswith("Reached the limit")


@pytest.mark.parametrize("spread", [1.0, 140.0])
@pytest.mark.parametrize("omega", [1e3, 1e6, 1e9])
def test_large_omega_ends_soon_and_says_how(spread, omega, rng):
    w = rng.uniform(-spread, spread, (80, 80))
    S = 10.0 ** ((w + w.T) / 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = entropic_plan(S, omega=omega)
    assert result.n_products < 5000
    assert row_error(result.plan) <= max(1e-10, 1e-13 * omega * spread)
    assert result.converged == (result.residual <= 1e-10)
