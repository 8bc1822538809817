"""ANCMM on a device: the same result, the kinds that were given, clear errors."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine, make_blobs, make_moons
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import minmax_scale

from bistochastic import ANCMM, CAN, CLR, DSDC, ERCAN, PCAN, InputError
from bistochastic.core.errors import DeviceMemoryError, MissingError
from selection import some

torch = pytest.importorskip(
    "torch", reason="torch is not installed; make test-extras installs it"
)

from bistochastic.places import tables as costs  # noqa: E402
from bistochastic.places.torch_device import device as devices  # noqa: E402
from bistochastic.places.torch_device import search as torch_search  # noqa: E402


def quietly(make, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(*args)


SETS = {
    "wine": (minmax_scale(load_wine().data), 3),
    "moons": (make_moons(400, noise=0.05, random_state=0)[0], 2),
    "digits": (load_digits().data[:600], 10),
    "blobs": (make_blobs(900, 16, centers=6, cluster_std=4.0, random_state=0)[0], 6),
}
WAYS = {
    "default": {},
    "both": {"refine": "both", "n_neighbors": 8},
    "paper's rows": {"refine": None, "n_neighbors": 10},
    "row": {"refine": None, "n_neighbors": 10, "alpha": "row"},
    "exact": {"refine": None, "n_neighbors": 10, "graph_update": "exact"},
    "all": {"refine": None, "n_neighbors": 10, "candidates": None},
    "cosine": {"metric": "cosine", "n_neighbors": 10},
    "manhattan": {"metric": "manhattan", "n_neighbors": 10},
    "without loops": {"self_neighbor": False, "n_neighbors": 10},
}


@pytest.mark.parametrize("name", some(SETS, 2))
@pytest.mark.parametrize("way", WAYS)
def test_a_device_gives_the_same_clusters(name, way, device):
    X, c = SETS[name]
    here = quietly(ANCMM(c, **WAYS[way], tol=1e-10).fit, X)
    there = quietly(ANCMM(c, **WAYS[way], tol=1e-10, device=device).fit, X)
    np.testing.assert_array_equal(here.labels_, there.labels_)
    sums = there.affinity_matrix_.sum(axis=1)
    np.testing.assert_allclose(sums, 1.0, atol=1e-9 if way == "exact" else 2e-10)
    assert (there.affinity_matrix_ != there.affinity_matrix_.T).nnz == 0
    assert here.n_iter_ == there.n_iter_
    np.testing.assert_allclose(here.alpha_, there.alpha_, rtol=1e-9)


def test_given_distances_and_graphs(device):
    X, c = SETS["wine"]
    D = kneighbors_graph(X, 20, mode="distance")
    A = kneighbors_graph(X, 10)
    A = csr_array(A + A.T + 0.1 * csr_array(np.eye(len(X))))
    dense = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
    for metric, given in (
        ("precomputed", D),
        ("precomputed", dense),
        ("affinity", A),
        ("affinity", A.toarray()),
    ):
        here = quietly(ANCMM(c, metric=metric).fit, given)
        there = quietly(ANCMM(c, metric=metric, device=device).fit, given)
        np.testing.assert_array_equal(here.labels_, there.labels_)


def test_tensors_give_tensors(device):
    X, c = SETS["wine"]
    want = ANCMM(c).fit(X)
    for kind in (torch.float64, torch.float32):
        x = torch.asarray(X, dtype=kind, device=device)
        model = ANCMM(c).fit(x)
        assert isinstance(model.labels_, torch.Tensor)
        assert model.labels_.device == x.device
        np.testing.assert_array_equal(model.labels_.cpu(), want.labels_)
        assert isinstance(model.affinity_matrix_, csr_array)
        assert isinstance(model.embedding_, np.ndarray)
        np.testing.assert_array_equal(model.predict(x), want.labels_)
        assert model.memberships(x).shape == (len(X), c)
        assert model.n_features_in_ == X.shape[1]
    again = ANCMM(c, metric="affinity").fit(
        torch.asarray(want.affinity_matrix_.toarray(), device=device)
    )
    np.testing.assert_array_equal(again.labels_.cpu(), want.labels_)


def test_results_stay_until_they_are_asked_for(device, tmp_path):
    from bistochastic.io import load, save

    X, c = SETS["wine"]
    model = ANCMM(c, device=device)
    assert not hasattr(model, "affinity_matrix_")
    model.fit(X)
    assert "affinity_matrix_" not in vars(model)
    S = model.affinity_matrix_
    assert S is model.affinity_matrix_
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(other.embedding_, model.embedding_)
        np.testing.assert_array_equal(other.predict(X), model.labels_)
    save(model.fit(X), tmp_path / "wine.model")
    held = load(tmp_path / "wine.model")
    np.testing.assert_array_equal(held.scaling_, model.scaling_)
    assert held.device == device
    assert clone(model).device == device
    with pytest.raises(InputError):
        model.fit(X[:2])
    assert not hasattr(model, "affinity_matrix_")
    assert "_place" not in vars(model)


def test_many_points_in_another_order(device, monkeypatch):
    monkeypatch.setattr("bistochastic.cluster.problem.ORDERED", 1000)
    monkeypatch.setattr(torch_search, "FEW", 1000)
    X, _ = make_blobs(2000, 8, centers=5, cluster_std=2.0, random_state=1)
    here = ANCMM(5, n_neighbors=12, neighbors="exact").fit(X)
    there = ANCMM(5, n_neighbors=12, neighbors="exact", device=device).fit(X)
    np.testing.assert_array_equal(here.labels_, there.labels_)
    gap = abs(here.affinity_matrix_ - there.affinity_matrix_)
    assert gap.max() < 1e-4  # eigenvectors are
    np.testing.assert_allclose(here._points.X, there._points.X)
    near = ANCMM(5, n_neighbors=12, neighbors=0.9, device=device).fit(X)
    assert 0.85 < near.history_[0]["recall"] <= 1.0


def test_singles_are_right_to_singles(device):
    X, c = SETS["wine"]
    model = ANCMM(c, device=device, precision="single").fit(X)
    assert model.affinity_matrix_.dtype == np.float32
    assert model.converged_
    np.testing.assert_allclose(model.affinity_matrix_.sum(axis=1), 1.0, atol=2e-5)
    np.testing.assert_array_equal(model.labels_, ANCMM(c).fit(X).labels_)
    with pytest.raises(InputError, match="goes with a device"):
        ANCMM(c, precision="single").fit(X)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nonsense", "is no device of torch"),
        ("cuda:99", "torch"),
        ("meta", "doubles and sparse products"),
        (3, "must be None or a device"),
    ],
)
def test_devices_that_are_not_there(name, said):
    with pytest.raises(InputError, match=said):
        ANCMM(3, device=name).fit(load_iris().data)


def test_no_gpu_and_no_torch(monkeypatch):
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="sees no GPU here"):
            ANCMM(3, device="cuda").fit(load_iris().data)
    monkeypatch.setattr(devices, "find_spec", lambda name: None)
    with pytest.raises(MissingError, match="gpu") as error:
        ANCMM(3, device="cuda").fit(load_iris().data)
    assert isinstance(error.value, ImportError)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x: x.requires_grad_(), "X.detach()"),
        (lambda x: x.to_sparse_csr(), "points are dense"),
        (lambda x: x.to(torch.complex128), "real numbers"),
        (lambda x: x[0], "a row for each point"),
        (lambda x: x[:0], "a row for each point"),
        (lambda x: x.index_fill(0, torch.tensor([4]), torch.nan), r"X\[4, 0\] is nan"),
    ],
)
def test_tensors_that_cannot_be_used(change, said):
    x = change(torch.asarray(load_iris().data))
    with pytest.raises(InputError, match=said):
        ANCMM(3, device="cpu").fit(x)


@pytest.mark.parametrize("metric", ["manhattan", "chebyshev"])
def test_tensors_are_measured_by_the_metric(metric, device, rng):
    X = rng.standard_normal((80, 6))
    here = ANCMM(3, metric=metric).fit(X)
    there = ANCMM(3, metric=metric, device=device).fit(torch.asarray(X))
    gap = abs(here.affinity_matrix_ - there.affinity_matrix_)
    assert gap.max() < 1e-6


def test_a_second_fit_forgets_the_first(device):
    X, _ = make_blobs(120, centers=3, random_state=0)
    other, _ = make_blobs(90, centers=3, random_state=5)
    model = ANCMM(3, device=device).fit(X)
    model.predict(X)
    model.fit(other + 50)
    np.testing.assert_array_equal(model.predict(other + 50), model.labels_)
    with pytest.raises(InputError):
        model.fit(X[:2])
    assert not hasattr(model, "_points")


def test_a_model_is_seen_without_its_device(monkeypatch):
    X, c = SETS["wine"]
    model = ANCMM(c, device="cpu").fit(X)
    shares = model.memberships(X).toarray()
    monkeypatch.setattr(devices, "find_spec", lambda name: None)
    np.testing.assert_allclose(model.memberships(X).toarray(), shares, atol=1e-9)


def test_each_point_a_cluster_with_alphas_of_rows(device, rng):
    X = rng.standard_normal((3, 2))
    model = ANCMM(3, alpha="row", device=device).fit(X)
    assert sorted(model.labels_) == [0, 1, 2]


def test_arrays_that_torch_does_not_take(device):
    X, _ = make_blobs(120, centers=3, random_state=0)
    want = ANCMM(3).fit(X[::-1]).labels_
    np.testing.assert_array_equal(ANCMM(3, device=device).fit(X[::-1]).labels_, want)
    read = X.copy()
    read.setflags(write=False)
    np.testing.assert_array_equal(
        ANCMM(3, device=device).fit(read).labels_, ANCMM(3).fit(X).labels_
    )


def test_threads_ask_for_the_same_attribute(device):
    from concurrent.futures import ThreadPoolExecutor

    X, _ = make_blobs(900, centers=3, random_state=1)
    for _ in range(2):
        model = ANCMM(3, n_neighbors=10, device=device).fit(X)
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda _, m=model: m.affinity_matrix_, range(4)))
        assert all(S is found[0] for S in found)


def test_cosines(device, rng):
    X = rng.standard_normal((120, 2))
    for kind in ("cosine", "euclidean"):
        model = ANCMM(3, metric=kind, refine=None, device=device).fit(X)
        np.testing.assert_array_equal(model.predict(X), model.labels_)
    X[17] = 0
    with pytest.raises(InputError, match=r"\(17\)"):
        ANCMM(3, metric="cosine", device=device).fit(X)


def test_sparse_tensors_of_distances():
    X, c = SETS["wine"]
    D = kneighbors_graph(X, 20, mode="distance")
    parts = (torch.asarray(part) for part in (D.indptr, D.indices, D.data))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that the layout is new
        T = torch.sparse_csr_tensor(*parts, size=D.shape)
        want = ANCMM(c, metric="precomputed").fit(D).labels_
        for table in (T, T.to_sparse_coo(), T.to_sparse_csc()):
            model = ANCMM(c, metric="precomputed").fit(table)
            np.testing.assert_array_equal(model.labels_, want)


def test_the_distance_to_the_exact_solution_in_singles(device):
    X, _ = make_blobs(120, centers=3, random_state=0)
    model = ANCMM(3, device=device, precision="single").fit(X)
    assert np.isfinite(model.approximation(X).gap)


@pytest.mark.gpu
def test_methods_by_k_means_do_not_run_on_devices():
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    with pytest.raises(InputError, match=r"pass X\.cpu"):
        DSDC(3).fit(torch.asarray(load_iris().data, device="cuda"))


@pytest.mark.parametrize(
    "model",
    [
        CAN(3, n_neighbors=10),
        CAN(3, n_neighbors=10, candidates="global"),
        CLR(3, n_neighbors=10),
        CLR(3, n_neighbors=10, norm="l1", candidates="global"),
        ERCAN(3, eta=0.1),
        PCAN(3, n_neighbors=10),
        PCAN(3, n_neighbors=10, candidates="local"),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore")
def test_every_method_with_the_rank_constraint_has_the_labels_of_the_cpu(model, device):
    X = minmax_scale(load_wine().data)
    here = clone(model).fit(X)
    there = clone(model).set_params(device=device).fit(X)
    np.testing.assert_array_equal(there.labels_, here.labels_)
    assert abs(there.affinity_matrix_ - here.affinity_matrix_).max() < 1e-9
    np.testing.assert_array_equal(there.predict(X), here.predict(X))
    tensor = torch.asarray(X, device=device)
    assert clone(model).fit(tensor).labels_.device == tensor.device


def test_out_of_memory_shrinks_tiles_and_then_says_so(monkeypatch):
    X = load_iris().data
    tiles, turns = [], 2
    plus = costs.TableCosts.plus

    def full(self, *args):
        tiles.append(self._tile)
        if len(tiles) <= turns:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return plus(self, *args)

    monkeypatch.setattr(costs.TableCosts, "plus", full)
    model = ANCMM(3, n_neighbors=10, device="cpu").fit(X)
    assert tiles[:3] == [tiles[0], tiles[0] // 4, tiles[0] // 16]
    np.testing.assert_array_equal(
        model.labels_, ANCMM(3, n_neighbors=10).fit(X).labels_
    )
    turns = 100
    with pytest.raises(DeviceMemoryError, match="tiles of 16 MiB at last") as error:
        ANCMM(3, n_neighbors=10, device="cpu").fit(X)
    assert isinstance(error.value, MemoryError)
    assert devices.SMALLER == (4, 3)
