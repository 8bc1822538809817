"""What all tests share: the options, holders to run on, Dask workers, one seed."""

import importlib.util
from functools import partial

import hypothesis
import numpy as np
import pytest
from scipy.sparse import csr_array

from bistochastic.places.host.csr import Csr
from bistochastic.places.host.dense import Dense
from bistochastic.places.host.pattern_costs import GraphPattern, PatternCosts
from bistochastic.places.parts import Part
from bistochastic.places.tables import DenseCosts, TableCosts
from row_blocks import Blocks, cheapest, table

for name, number in (("some", 15), ("all", 50)):
    hypothesis.settings.register_profile(
        name, derandomize=True, deadline=None, max_examples=number
    )


def pytest_addoption(parser):
    parser.addoption(
        "--all",
        action="store_true",
        help="all seeds and configurations, instead of a few of each kind",
    )


def pytest_configure(config):
    hypothesis.settings.load_profile("all" if config.getoption("--all") else "some")


def pytest_collection_modifyitems(config, items):
    """Leave out what only ``--all`` runs; begin with what takes longest."""
    if not config.getoption("--all"):
        left = [item for item in items if item.get_closest_marker("thorough")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not item.get_closest_marker("thorough")]
    items.sort(key=lambda item: not item.get_closest_marker("first"))


@pytest.fixture
def thorough(request):
    """Tell whether all is to be tested, for tests that make their own cases."""
    return request.config.getoption("--all")


def _numpy(S):
    return Dense(np.asarray(S, dtype=float))


def _csr(S):
    return Csr(csr_array(np.asarray(S, dtype=float)))


def _strict(S):
    import array_api_strict

    return Dense(array_api_strict.asarray(np.asarray(S, dtype=float)))


def _torch(S, device="cpu"):
    import torch

    return Dense(torch.asarray(np.asarray(S, dtype=float), device=device))


def _torch_csr(S, device="cpu"):
    import torch

    from bistochastic.places.torch_device.csr import TorchCsr

    S = torch.asarray(np.asarray(S, dtype=float), device=device)
    return TorchCsr(S.to_sparse_csr())


def _blocks(S):
    return Blocks.split(csr_array(np.asarray(S, dtype=float)))


HOLDERS = {
    "numpy": _numpy,
    "csr": _csr,
    "array_api_strict": _strict,
    "torch": _torch,
    "torch_csr": _torch_csr,
    "two_blocks": _blocks,
    "torch_cuda": partial(_torch, device="cuda"),
    "torch_csr_cuda": partial(_torch_csr, device="cuda"),
}


def _strict_costs(D, m):
    import array_api_strict

    return DenseCosts(array_api_strict.asarray(D)).closest(m)


def _torch_costs(D, m, device="cpu"):
    import torch

    return DenseCosts(torch.asarray(D, device=device)).closest(m)


def _torch_table(D, m, device="cpu"):
    import torch

    from bistochastic.places.torch_device.csr import TorchCsr

    part = Part(*(torch.asarray(x, device=device) for x in cheapest(D, m)))
    return TableCosts([part], len(D), TorchCsr)


def _pattern_costs(D, m):
    _, columns, values = cheapest(D, m)
    costs = np.full(D.shape, np.inf)
    np.put_along_axis(costs, columns, values, axis=1)
    known = np.isfinite(costs) | np.isfinite(costs).T
    S = csr_array(known.astype(float))
    return PatternCosts(GraphPattern(S.indptr, S.indices), costs[known])


COSTS = {  # the m cheapest candidates of each row of an array of costs
    "numpy": lambda D, m: DenseCosts(D).closest(m),
    "pattern": _pattern_costs,
    "table": lambda D, m: TableCosts([Part(*cheapest(D, m))], len(D)),
    "array_api_strict": _strict_costs,
    "torch": _torch_costs,
    "torch_table": _torch_table,
    "two_blocks": table,
    "torch_cuda": partial(_torch_costs, device="cuda"),
    "torch_table_cuda": partial(_torch_table, device="cuda"),
}


def need(module, name=None):
    """Skip, with a sentence, what an absent extra would test."""
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{name or module} is not installed; make test-extras installs it")


def need_device(name):
    """Skip what a device that is not here would test."""
    need("torch")
    import torch

    if name == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")


def _marked(names):
    """Mark what runs on a GPU."""
    return [
        pytest.param(name, marks=pytest.mark.gpu) if name.endswith("cuda") else name
        for name in names
    ]


@pytest.fixture(params=_marked(HOLDERS))
def hold(request):
    """Return a function that puts a NumPy matrix into one kind of holder."""
    if request.param.startswith("torch"):
        need_device(request.param.split("_")[-1])
    return HOLDERS[request.param]


@pytest.fixture(params=_marked(COSTS))
def cost(request):
    """Return a function that puts costs into one kind of holder."""
    if request.param.startswith("torch"):
        need_device(request.param.split("_")[-1])
    return COSTS[request.param]


@pytest.fixture(params=_marked(["cpu", "cuda"]))
def device(request):
    """Return the name of a device of torch that is there."""
    need_device(request.param)
    return request.param


@pytest.fixture(scope="session")
def client():
    """Return the client of the two Dask workers that all tests of a process share.

    Tests that close a client or lose a worker start workers of their own.
    """
    need("distributed")
    from distributed import Client

    with local_cluster() as cluster, Client(cluster) as made:
        yield made


def local_cluster(**options):
    """Return workers of Dask, two of them inside this process unless told otherwise."""
    from distributed import LocalCluster

    common = {"n_workers": 2, "threads_per_worker": 1, "processes": False}
    return LocalCluster(**common | {"dashboard_address": ":0"} | options)


@pytest.fixture
def rng():
    return np.random.default_rng(20250225)


@pytest.fixture
def wine(tmp_path, monkeypatch):
    """Return the working folder of a test, with a table of wines and one with gaps."""
    from commands import rows

    monkeypatch.chdir(tmp_path)
    (tmp_path / "wine.csv").write_text(rows())
    (tmp_path / "holes.csv").write_text(rows({(5, 0), (7, 2)}))
    return tmp_path
