"""Here the holders on Dask workers speak, too."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from conftest import COSTS, HOLDERS, _marked, need, need_device
from row_blocks import cheapest

CLUSTER = []


def client():
    """Return the client of a small cluster inside this process."""
    need("distributed")
    from distributed import Client, LocalCluster

    if not CLUSTER:
        cluster = LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            dashboard_address=":0",
        )
        CLUSTER.extend([cluster, Client(cluster)])
    return CLUSTER[1]


@pytest.fixture(scope="session", autouse=True)
def _closed():
    yield
    while CLUSTER:
        CLUSTER.pop().close()


def _layout(n, caller=False):
    from bistochastic.places.dask_workers.layout import Layout

    return Layout(client(), [n // 3, 0, n - n // 3], caller=caller)


def _dask(S, caller=False):
    from bistochastic.places.dask_workers.blocks import Blocks

    return Blocks.of(_layout(len(S), caller), csr_array(np.asarray(S, dtype=float)))


def _dask_costs(D, m):
    from bistochastic.places.dask_workers.tables import BlockCosts

    return BlockCosts.of(_layout(len(D)), *cheapest(D, m)[1:])


MORE_HOLDERS = HOLDERS | {
    "dask": _dask,
    "dask_caller": lambda S: _dask(S, caller=True),
}
MORE_COSTS = COSTS | {"dask": _dask_costs}


@pytest.fixture(params=_marked(MORE_HOLDERS))
def hold(request):
    """Return a function that puts a NumPy matrix into one kind of holder."""
    if request.param.startswith("torch"):
        need_device(request.param.split("_")[-1])
    return MORE_HOLDERS[request.param]


@pytest.fixture(params=_marked(MORE_COSTS))
def cost(request):
    """Return a function that puts costs into one kind of holder."""
    if request.param.startswith("torch"):
        need_device(request.param.split("_")[-1])
    return MORE_COSTS[request.param]
