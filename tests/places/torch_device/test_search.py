"""The search on a device finds the neighbors that all pairs in doubles give."""

import importlib.util

import numpy as np
import pytest

from bistochastic.core.errors import InputError
from bistochastic.neighbors.exact import nearest
from bistochastic.neighbors.points import Points

torch = pytest.importorskip(
    "torch", reason="torch is not installed; make test-extras installs it"
)

from bistochastic.places.torch_device import build as torch_build  # noqa: E402
from bistochastic.places.torch_device import cells as torch_cells  # noqa: E402
from bistochastic.places.torch_device import measures as torch_measures  # noqa: E402
from bistochastic.places.torch_device import search as torch_search  # noqa: E402


def clouds():
    rng = np.random.default_rng(0)
    n = 1500
    clumps = rng.random((30, 3))[rng.integers(0, 30, n)]
    return {
        "uniform": rng.random((n, 16)),
        "plane": rng.random((n, 2)),
        "line": rng.standard_normal((n, 1)),
        "wide": rng.standard_normal((n, 150)),
        "clumps": clumps + 1e-6 * rng.standard_normal((n, 3)),
        "tails": rng.standard_cauchy((n, 4)),
        "ties": rng.integers(0, 4, (n, 4)).astype(float),
        "same": np.zeros((n, 3)),
        "many same": np.r_[np.ones((n // 2, 3)), rng.random((n // 2, 3))],
        "tiny": np.r_[rng.random((n // 2, 2)), 3e-22 * rng.random((n // 2, 2))],
        "far": rng.random((n, 3)) + 1e7 * rng.integers(0, 2, (n, 1)),
    }


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Divide few points already, into small parts."""
    monkeypatch.setattr(torch_search, "FEW", 500)
    monkeypatch.setattr(torch_measures, "CLOSE", 4)


@pytest.mark.parametrize("name", clouds())
@pytest.mark.parametrize("single", [False, True])
def test_an_exact_search_is_exact(name, single, device):
    X = clouds()[name]
    X = (X - np.median(X, axis=0)).astype(np.float32 if single else np.float64)
    if single and name == "tiny":
        X = X.astype(np.float64)  # squares of singles vanish
    x = torch.asarray(X, device=device)
    kernels = torch_build.bodies(x)
    columns, costs, recall = torch_search.neighbors(x, 9, "exact", kernels)
    true, far = nearest(Points(X, "euclidean", 0.0), 9)
    assert recall == 1.0
    np.testing.assert_allclose(costs.cpu(), far, rtol=1e-12)
    np.testing.assert_array_equal(columns.cpu(), true)


@pytest.mark.parametrize("wanted", [0.6, 0.9, 0.99])
def test_an_approximate_search_has_the_recall_that_it_says(wanted, device):
    X = clouds()["uniform"]
    x = torch.asarray(X - np.median(X, axis=0), device=device)
    kernels = torch_build.bodies(x)
    _, costs, recall = torch_search.neighbors(x, 9, wanted, kernels)
    _, far = nearest(Points.of(X, "euclidean"), 9)
    real = (costs.cpu().numpy() <= far[:, -1:] * (1 + 1e-12)).mean()
    assert recall >= wanted - 0.02
    assert real == pytest.approx(recall, abs=0.05)


def test_a_small_budget_gives_the_same(device):
    x = torch.asarray(clouds()["plane"] - 0.5, device=device)
    kernels = torch_build.bodies(x)
    wide = torch_search.neighbors(x, 20, "exact", kernels)
    narrow = torch_search.neighbors(x, 20, "exact", kernels, budget=1 << 16)
    for here, there in zip(wide, narrow, strict=True):
        assert here is there or bool((torch.as_tensor(here == there)).all())


def test_a_full_list_is_searched_for_again(monkeypatch, device):
    monkeypatch.setattr(torch_search, "ROOM", 1)
    X = clouds()["uniform"]
    x = torch.asarray(X - np.median(X, axis=0), device=device)
    kernels = torch_build.bodies(x)
    columns, _, _ = torch_search.neighbors(x, 2, "exact", kernels)
    np.testing.assert_array_equal(
        columns.cpu(), nearest(Points.of(X, "euclidean"), 2)[0]
    )


def test_bounds_hold_and_parts_are_nearly_full(device):
    X = clouds()["clumps"]
    x = torch.asarray(X - np.median(X, axis=0), device=device)
    cells = torch_cells.divided(x)
    assert len(cells) * cells.size < 1.3 * len(X)
    numbers = cells.numbers.view(-1).cpu().numpy()
    assert sorted(numbers[numbers < len(X)]) == list(range(len(X)))
    every = torch.arange(len(cells), device=x.device)
    text = torch_measures.minima
    bounds = torch_measures.first_bounds(cells, every, 9, text).cpu().numpy()
    far = nearest(Points.of(X, "euclidean"), 9)[1][:, -1]
    real = numbers < len(X)
    assert (bounds[real] * cells.unit**2 >= far[numbers[real]]).all()
    assert (bounds[~real] == -1).all()


def test_coordinates_without_squares(device):
    x = 1e200 * torch.asarray(clouds()["plane"] - 0.5, device=device)
    with pytest.raises(InputError, match="Squared distances overflow"):
        torch_search.neighbors(x, 3, "exact")


def test_the_mth_smallest_of_long_rows(device):
    D = np.random.default_rng(0).random((20, 100_000))
    for numbers in (D, np.round(50 * D)):
        held = torch.asarray(numbers, device=device)
        for m in (1, 5, 16):
            found = torch_measures.mth_smallest(held, m)[:, 0].cpu()
            np.testing.assert_array_equal(found, np.sort(numbers, axis=1)[:, m - 1])


@pytest.mark.parametrize("n", [501, 1023, 1025, 1500])
@pytest.mark.parametrize("m", [1, 40])
def test_any_number_of_points(n, m, device):
    X = np.random.default_rng(n).random((n, 5))
    x = torch.asarray(X - np.median(X, axis=0), device=device)
    kernels = torch_build.bodies(x)
    columns, _, _ = torch_search.neighbors(x, m, "exact", kernels)
    np.testing.assert_array_equal(
        columns.cpu(), nearest(Points.of(X, "euclidean"), m)[0]
    )


KERNELS = """
import os
os.environ["TRITON_INTERPRET"] = "1"
import contextlib, sys
import numpy as np, torch
from bistochastic.places import tables
from bistochastic.places.torch_device import csr, search, triton_kernels as kernels
torch.cuda.device_of = lambda x: contextlib.nullcontext()
search.FEW, search.CLOSE = 100, 3
rng = np.random.default_rng(0)
for n, d in ((1100, 3), (1030, 16)):
    x = torch.from_numpy(rng.random((n, d)) - 0.5)
    made = search.neighbors(x, 4, "exact", kernels)
    true = search.all_pairs(x, torch.arange(n), 4)
    assert (made[0] == true[0]).all() and (made[1] == true[1]).all()
A = torch.from_numpy(rng.random((70, 70)) * (rng.random((70, 70)) < 0.2))
S = (A + A.T).to_sparse_csr()
v, X, Y = (torch.from_numpy(rng.random(s)) for s in (70, (70, 24), (70, 24)))
def near(a, b):
    torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)
near(kernels.product(S, v), S @ v)
near(kernels.product(S, Y[:, :5]), S @ Y[:, :5])
wanted = 2 * (S @ Y) + 0.5 * Y - 3 * X
kernels.three_term(S, X, Y, torch.tensor([2, 0.5, -3], dtype=torch.float64))
near(X, wanted)
square = (A + A.T) @ (A + A.T)
near(kernels.squared(S), square[csr.rows_of(S), S.col_indices()])
assert kernels.mirrored(S)
S.values()[3] *= 1 + 1e-15
assert not kernels.mirrored(S)
rows, columns = torch.arange(9), torch.from_numpy(rng.integers(0, 70, (9, 5)))
near(kernels.distances(Y, rows, columns), tables.distances(Y, rows, columns))
print("all the same")
"""


def test_bodies_for_gpus_give_what_the_texts_give():
    """In Triton's interpreter, which needs no GPU."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("triton is not installed")
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", KERNELS], capture_output=True, text=True
    )
    if "0-dimensional arrays can be converted" in done.stderr:
        pytest.skip("this Triton cannot interpret with this NumPy")
    assert done.stdout.strip() == "all the same", done.stderr[-2000:]
