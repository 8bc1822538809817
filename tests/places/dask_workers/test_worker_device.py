"""Blocks on the devices of workers."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from bistochastic import ANCMM, InputError
from matrices import sparse_symmetric

pytest.importorskip("distributed")
import dask.array as da


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_blocks_on_a_device_are_those_of_the_cpu(rng, kind):
    torch = pytest.importorskip("torch")
    from bistochastic.neighbors.points import Points
    from bistochastic.places.dask_workers import worker_device as block_device
    from bistochastic.places.dask_workers.block import Block
    from bistochastic.places.dask_workers.block_tasks import multiplied, three_term

    A = sparse_symmetric(rng, 60, density=0.3).astype(kind)
    block = Block.whole(csr_array(A)[20:50], 20)
    v = rng.standard_normal((60, 5)).astype(kind)
    own, piece = v[20:50], v[block.halo]
    X, terms = rng.standard_normal((30, 5)).astype(kind), (kind(2), kind(0.5), kind(-1))
    points = Points.of(rng.random((40, 7)), "euclidean")
    names = ["cpu"] + ["cuda"] * torch.cuda.is_available()
    for name in names:
        for given, task in (
            ((block, own, piece), multiplied),
            ((block, own[:, 0], piece[:, 0]), multiplied),
            ((block, terms, X, own, piece), three_term),
        ):
            there = block_device.On(task, name)(*given)
            digits = 1e-5 if kind is np.float32 else 1e-12
            np.testing.assert_allclose(there, task(*given), rtol=digits, atol=digits)
        nearest = block_device.On(block_device.nearest, name)
        Y, D = points.X[:15] + 0.01, np.linalg.norm
        among = D(points.X[:, None] - points.X, axis=2).argsort()[:, :6]
        np.testing.assert_array_equal(
            np.sort(nearest(points, points.X, 6)), np.sort(among)
        )
        among = D(Y[:, None] - points.X, axis=2).argsort()[:, :6]
        np.testing.assert_array_equal(np.sort(nearest(points, Y, 6)), np.sort(among))
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(block_device, "PAIRS", 0)
            found = nearest(points, Y, 6)
        both = np.concatenate([Y, points.X])
        among = D(Y[:, None] - both, axis=2)
        np.fill_diagonal(among, np.inf)
        among = np.maximum(among.argsort()[:, :6] - 15, -1)
        np.testing.assert_array_equal(np.sort(found), np.sort(among))
    assert block_device.place() is None


def test_a_device_that_workers_do_not_have(client):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(InputError, match=r"worker .* cannot compute.*sees no GPU"):
        ANCMM(2, device="cuda").fit(da.ones((9, 2)))
