"""Newton's systems on workers."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from selection import some

pytest.importorskip("distributed")


def test_newton_systems_are_solved_to_ten_digits(client, rng):
    from bistochastic.places.dask_workers.block_solvers import conjugate_gradients
    from bistochastic.places.dask_workers.blocks import Blocks
    from bistochastic.places.dask_workers.layout import Layout

    A = (rng.random((100, 100)) < 0.2) * 1.0
    A = np.maximum(A, A.T) + np.eye(100)
    S = Blocks.of(Layout(client, [30, 0, 70]), csr_array(A))
    u, b = rng.random(100) + 0.5, rng.standard_normal(100)
    r = u * (A @ u)
    x = np.asarray(conjugate_gradients(S, u, r, b, 1e-11, 1000))
    np.testing.assert_allclose(r * x + u * (A @ (u * x)), b, atol=1e-9)
    assert S.n_products < 60


@pytest.mark.parametrize("accuracy", some([0.25, 1e-6, 0.02, 1e-3], 2))
def test_newton_systems_take_the_same_steps_as_on_one_machine(client, rng, accuracy):
    from bistochastic.places.dask_workers.block_solvers import conjugate_gradients
    from bistochastic.places.dask_workers.blocks import Blocks
    from bistochastic.places.dask_workers.layout import Layout
    from bistochastic.places.host.csr import Csr
    from bistochastic.scaling import linear_systems as systems

    A = (rng.random((80, 80)) < 0.1) * rng.random((80, 80))
    A = csr_array(np.maximum(A, A.T) + 0.3 * np.eye(80))
    S = Blocks.of(Layout(client, [30, 0, 50]), A)
    u, b = rng.random(80) + 0.5, rng.standard_normal(80)
    r = u * (A @ u)
    here = systems.conjugate_gradients(Csr(A), u, r, b.copy(), accuracy, 1000)
    there = np.asarray(conjugate_gradients(S, u, r, b, accuracy, 1000))
    np.testing.assert_allclose(there, here, rtol=1e-9, atol=1e-11)
