"""Holders to run every mathematical test on, and one seed."""

import importlib.util

import hypothesis
import numpy as np
import pytest
from scipy.sparse import csr_array

from bistochastic.backends.costs import DenseCosts, Part, TableCosts
from bistochastic.backends.csr import Csr
from bistochastic.backends.dense import Dense
from row_blocks import Blocks, cheapest, table

hypothesis.settings.register_profile(
    "repeatable", derandomize=True, deadline=None, max_examples=50
)
hypothesis.settings.load_profile("repeatable")


def _numpy(S):
    return Dense(np.asarray(S, dtype=float))


def _csr(S):
    return Csr(csr_array(np.asarray(S, dtype=float)))


def _strict(S):
    import array_api_strict

    return Dense(array_api_strict.asarray(np.asarray(S, dtype=float)))


def _torch(S):
    import torch

    return Dense(torch.asarray(np.asarray(S, dtype=float)))


def _torch_csr(S):
    import torch

    from bistochastic.backends.torch_csr import TorchCsr

    return TorchCsr(torch.asarray(np.asarray(S, dtype=float)).to_sparse_csr())


def _blocks(S):
    return Blocks.split(csr_array(np.asarray(S, dtype=float)))


HOLDERS = {
    "numpy": _numpy,
    "csr": _csr,
    "array_api_strict": _strict,
    "torch": _torch,
    "torch_csr": _torch_csr,
    "two_blocks": _blocks,
}


def _strict_costs(D, m):
    import array_api_strict

    return DenseCosts(array_api_strict.asarray(D)).closest(m)


def _torch_costs(D, m):
    import torch

    return DenseCosts(torch.asarray(D)).closest(m)


def _torch_table(D, m):
    import torch

    from bistochastic.backends.torch_csr import TorchCsr

    part = Part(*(torch.asarray(x) for x in cheapest(D, m)))
    return TableCosts([part], len(D), TorchCsr)


COSTS = {  # the m cheapest candidates of each row of an array of costs
    "numpy": lambda D, m: DenseCosts(D).closest(m),
    "table": lambda D, m: TableCosts([Part(*cheapest(D, m))], len(D)),
    "array_api_strict": _strict_costs,
    "torch": _torch_costs,
    "torch_table": _torch_table,
    "two_blocks": table,
}


def need(module, name=None):
    """Skip, with a sentence, what an absent extra would test."""
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{name or module} is not installed; make test-extras installs it")


@pytest.fixture(params=HOLDERS)
def hold(request):
    """Return a function that puts a NumPy matrix into one kind of holder."""
    if request.param.startswith("torch"):
        need("torch")
    return HOLDERS[request.param]


@pytest.fixture(params=COSTS)
def cost(request):
    """Return a function that puts costs into one kind of holder."""
    if request.param.startswith("torch"):
        need("torch")
    return COSTS[request.param]


@pytest.fixture
def rng():
    return np.random.default_rng(20250225)
