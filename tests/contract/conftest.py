"""Here the holders on Dask workers speak, too."""

from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_array

from conftest import COSTS, HOLDERS, _marked, need_device
from row_blocks import cheapest


def _layout(client, n, caller=False):
    from bistochastic.places.dask_workers.layout import Layout

    return Layout(client, [n // 3, 0, n - n // 3], caller=caller)


def _dask(client, S, caller=False):
    from bistochastic.places.dask_workers.blocks import Blocks

    layout = _layout(client, len(S), caller)
    return Blocks.of(layout, csr_array(np.asarray(S, dtype=float)))


def _dask_costs(client, D, m):
    from bistochastic.places.dask_workers.tables import BlockCosts

    return BlockCosts.of(_layout(client, len(D)), *cheapest(D, m)[1:])


ON_WORKERS = {"dask": _dask, "dask_caller": partial(_dask, caller=True)}
COSTS_ON_WORKERS = {"dask": _dask_costs}


def _made(request, here, on_workers):
    """Return the function that a parameter names, with the client that it needs."""
    if request.param in on_workers:
        return partial(on_workers[request.param], request.getfixturevalue("client"))
    if request.param.startswith("torch"):
        need_device(request.param.split("_")[-1])
    return here[request.param]


@pytest.fixture(params=_marked(HOLDERS | ON_WORKERS))
def hold(request):
    """Return a function that puts a NumPy matrix into one kind of holder."""
    return _made(request, HOLDERS, ON_WORKERS)


@pytest.fixture(params=_marked(COSTS | COSTS_ON_WORKERS))
def cost(request):
    """Return a function that puts costs into one kind of holder."""
    return _made(request, COSTS, COSTS_ON_WORKERS)
