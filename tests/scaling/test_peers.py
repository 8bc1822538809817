"""The mapping against solvers that others wrote."""

import numpy as np
import pytest
from scipy.optimize import minimize

from bistochastic import marcus_mapping
from conftest import need
from matrices import sparse_symmetric


def test_POT_s_plan_with_cost_minus_log_S_is_M(rng):
    need("ot", "POT")
    import ot

    for _ in range(10):
        n = int(rng.integers(2, 40))
        S = np.exp(rng.standard_normal((n, n)))
        S = S + S.T
        ones = np.ones(n)
        plan = ot.sinkhorn(ones, ones, -np.log(S), 1.0, numItermax=5000, stopThr=1e-12)
        np.testing.assert_allclose(marcus_mapping(S).matrix, plan, atol=1e-9)


@pytest.mark.parametrize("loops", [True, False])
def test_a_general_optimizer_finds_the_same_minimum_of_the_potential(rng, loops):
    S = sparse_symmetric(rng, 12, 0.6, loops=loops)

    def potential(f):
        u = np.exp(f)
        return 0.5 * u @ S @ u - f.sum(), u * (S @ u) - 1

    found = minimize(potential, np.zeros(12), jac=True, method="BFGS", tol=1e-9)
    u = np.exp(found.x)
    np.testing.assert_allclose(marcus_mapping(S).scaling, u, rtol=1e-6)
