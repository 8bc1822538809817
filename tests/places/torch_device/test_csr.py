"""Sparse matrices of torch: their components and their rows."""

import numpy as np
import pytest
from scipy.sparse import csr_array

torch = pytest.importorskip(
    "torch", reason="torch is not installed; make test-extras installs it"
)

from bistochastic.places.torch_device import build as torch_build  # noqa: E402
from bistochastic.places.torch_device import csr as torch_csr  # noqa: E402


@pytest.mark.parametrize("degree", [0.0, 0.5, 1.0, 1.5, 4.0])
def test_components_by_pointer_jumping(rng, degree, device):
    from bistochastic.graph import components

    n = 300
    i, j = rng.integers(0, n, (2, int(degree * n / 2)))
    A = csr_array((np.ones(i.size), (i, j)), shape=(n, n))
    A = csr_array(A + A.T)
    A.sort_indices()
    place = torch.device(device)
    S = torch_csr.TorchCsr(torch_build.from_scipy(A, place, torch.float64))
    wanted = components.numbered(components.search(S_of(A)))
    np.testing.assert_array_equal(torch_csr.search(S), wanted)
    assert S.scaled(S.ones()).labels is S.labels


def S_of(A):
    from bistochastic.places.host.csr import Csr

    return Csr(A)


def test_rows_of_a_graph_as_tables(rng, device):
    from bistochastic.places.given_pairs import of_affinities

    n = 60
    A = rng.random((n, n)) * (rng.random((n, n)) < 0.1)
    A = csr_array(A + A.T + np.eye(n))
    A.sort_indices()
    held = torch_build.from_scipy(A, torch.device(device), torch.float64)
    wanted = of_affinities(A, loops=True).parts
    for here, there in zip(wanted, torch_csr.TorchCsr(held).parts(), strict=True):
        for name in ("rows", "columns", "values"):
            np.testing.assert_array_equal(
                getattr(here, name), getattr(there, name).cpu()
            )
