"""Fits of data that lie on Dask workers."""

import gc
import os
import pickle
import signal
import time

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_blobs, make_moons
from sklearn.preprocessing import minmax_scale

from bistochastic import ANCMM, CAN, CLR, ERCAN, PCAN, InputError
from bistochastic.core.errors import ClusterError
from bistochastic.core.progress import heard
from bistochastic.io.models import load, save
from bistochastic.spectrum import ky_fan
from conftest import local_cluster

pytest.importorskip("distributed")
import dask
import dask.array as da
from distributed import Client

from selection import some


def wine():
    return minmax_scale(load_wine().data)


def clear():
    """Return points whose clusters are found in one step, for tests of all else."""
    return make_blobs(60, 13, centers=3, cluster_std=0.5, random_state=0)[0]


@pytest.mark.parametrize("refine", ["local", "triangles", None])
@pytest.mark.parametrize(
    "sizes", some([pytest.param((50, 0, 100, 28)), pytest.param((178,))], 1)
)
def test_the_graph_is_that_of_one_machine(client, refine, sizes):
    X = wine()
    options = {"n_clusters": 3, "n_neighbors": 10, "refine": refine}
    here = ANCMM(**options).fit(X)
    there = ANCMM(**options).fit(da.from_array(X, chunks=(sizes, 13)))
    assert there.labels_.chunks == (sizes,)
    np.testing.assert_array_equal(there.labels_.compute(), here.labels_)
    assert abs(there.affinity_matrix_ - here.affinity_matrix_).max() < 1e-12
    np.testing.assert_allclose(there.scaling_, here.scaling_, rtol=1e-9)
    np.testing.assert_allclose(there.alpha_, here.alpha_)
    assert [h["n_components"] for h in there.history_] == [
        h["n_components"] for h in here.history_
    ]
    np.testing.assert_array_equal(there.predict(X[:5]), here.labels_[:5])


@pytest.mark.parametrize("where", ["caller", "workers"])
def test_vectors_with_the_caller_or_on_workers(client, where):
    X = wine()
    here = ANCMM(3, n_neighbors=10).fit(X)
    with dask.config.set({"bistochastic.vectors": where}):
        there = ANCMM(3, n_neighbors=10).fit(da.from_array(X, chunks=(100, 13)))
    np.testing.assert_array_equal(there.labels_.compute(), here.labels_)


@pytest.mark.parametrize(
    "options",
    some(
        [
            {"graph_update": "exact", "refine": None},
            {"alpha": "row", "refine": None, "self_neighbor": False},
            {"candidates": None, "exact": False, "refine": None},
            {"metric": "cosine", "min_cluster_size": 12},
            {"alpha": "row", "refine": None},
            {"self_neighbor": False},
            {"self_neighbor": "lazy"},
            {"candidates": 25},
            {"metric": "cosine"},
            {"metric": "cityblock"},
            {"min_cluster_size": 12},
            {"n_neighbors": "auto"},
        ],
        4,
    ),
    ids=str,
)
@pytest.mark.filterwarnings("ignore:The graph has")
def test_parameters_mean_the_same(client, options):
    X = load_iris().data[::2] + 0.01 * np.random.default_rng(0).random((75, 4))
    options = {"n_clusters": 3, "n_neighbors": 8} | options
    here = ANCMM(**options).fit(X)
    there = ANCMM(**options).fit(da.from_array(X, chunks=((30, 45), 4)))
    np.testing.assert_array_equal(there.labels_.compute(), here.labels_)
    assert abs(there.affinity_matrix_ - here.affinity_matrix_).max() < 1e-7


def test_more_blocks_than_workers(client):
    X, _ = make_moons(300, noise=0.05, random_state=0)
    here = ANCMM(2, n_neighbors=8).fit(X)
    sizes = (40, 0, 1, 99, 60, 50, 50)
    with dask.config.set({"bistochastic.blocks": "chunks"}):
        there = ANCMM(2, n_neighbors=8).fit(da.from_array(X, chunks=(sizes, 2)))
    np.testing.assert_array_equal(there.labels_.compute(), here.labels_)


@pytest.mark.parametrize(
    "model",
    [
        CAN(3, n_neighbors=10),
        CLR(3, n_neighbors=10, candidates="global"),
        ERCAN(3, eta=0.1),
        PCAN(3, n_neighbors=10, candidates="local"),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore")
def test_every_method_with_the_rank_constraint_runs_on_workers(client, model):
    X, _ = make_blobs(200, 4, centers=3, cluster_std=1.2, random_state=0)
    here = clone(model).fit(X)
    there = clone(model).fit(da.from_array(X, chunks=(90, 4)))
    assert there.labels_.chunks == ((90, 90, 20),)
    np.testing.assert_array_equal(there.labels_.compute(), here.labels_)
    assert abs(there.affinity_matrix_ - here.affinity_matrix_).max() < 1e-9
    assert there.n_features_in_ == 4


def test_the_number_of_clusters_is_guessed_from_the_same_rows(client):
    X, _ = make_blobs(150, centers=4, cluster_std=0.7, random_state=0)
    there = ANCMM("auto").fit(da.from_array(X, chunks=(60, 2)))
    assert there.n_clusters_ == ANCMM("auto").fit(X).n_clusters_


def test_points_are_put_in_another_order_and_back(client, monkeypatch):
    monkeypatch.setattr("bistochastic.cluster.problem.ORDERED", 100)
    X, y = make_blobs(600, 3, centers=4, cluster_std=0.5, random_state=1)
    model = ANCMM(4, n_neighbors=8).fit(da.from_array(X, chunks=(150, 3)))
    labels = model.labels_.compute()
    assert len(set(zip(y.tolist(), labels.tolist(), strict=True))) == 4
    S = model.affinity_matrix_
    i, j = S.nonzero()
    assert (labels[i] == labels[j]).all()
    np.testing.assert_allclose(S.sum(axis=1), 1, atol=1e-7)


def test_cuts_and_joins(client):
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.normal(0, 1, (60, 2)), rng.normal(30, 0.1, (60, 2))])
    for c in (3, 5):
        options = {"n_clusters": c, "n_neighbors": 6, "max_iter": 2}
        here = ANCMM(**options).fit(X)
        there = ANCMM(**options).fit(da.from_array(X, chunks=(50, 2)))
        assert there.n_components_ == c
        np.testing.assert_array_equal(there.labels_.compute(), here.labels_)


@pytest.mark.parametrize("c", [1, 2])
def test_components_that_fill_blocks_are_joined(client, c):
    rng = np.random.default_rng(4)
    X = np.concatenate([rng.normal(40 * at, 0.5, (40, 2)) for at in range(3)])
    here = ANCMM(c, n_neighbors=6).fit(X)
    with dask.config.set({"bistochastic.blocks": "chunks"}):
        there = ANCMM(c, n_neighbors=6).fit(da.from_array(X, chunks=(40, 2)))
    assert there.n_clusters_ == c
    np.testing.assert_array_equal(there.labels_.compute(), here.labels_)
    np.testing.assert_array_equal(there.bridges_, here.bridges_)


def test_many_neighbors(client):
    X = np.random.default_rng(0).random((200, 2))
    here = ANCMM(2, n_neighbors=70).fit(X)
    there = ANCMM(2, n_neighbors=70).fit(da.from_array(X, chunks=((90, 0, 110), 2)))
    np.testing.assert_array_equal(there.labels_.compute(), here.labels_)


def test_results_are_gone_with_the_client():
    X = clear()
    with local_cluster(n_workers=1) as cluster, Client(cluster):
        model = ANCMM(3, n_neighbors=10).fit(da.from_array(X, chunks=(30, 13)))
    left = (
        lambda: model.predict(X),
        lambda: model.affinity_matrix_,
        lambda: model.scaling_,
        lambda: model.embedding_,
        lambda: pickle.dumps(model),
    )
    for ask in left:
        with pytest.raises(ClusterError, match="The Dask client is closed"):
            ask()


def test_duplicates_stay_together(client):
    X = np.repeat(np.random.default_rng(0).random((30, 2)), 4, axis=0)
    here = ANCMM(3, n_neighbors=9).fit(X)
    there = ANCMM(3, n_neighbors=9).fit(da.from_array(X, chunks=(50, 2)))
    np.testing.assert_array_equal(there.labels_.compute(), here.labels_)
    with pytest.raises(InputError, match="only 30 distinct rows"):
        ANCMM(31).fit(da.from_array(X, chunks=(50, 2)))


@pytest.mark.parametrize("c", [1, 12])
def test_one_cluster_and_as_many_as_points(client, c):
    X = np.random.default_rng(0).random((12, 2))
    there = ANCMM(c).fit(da.from_array(X, chunks=(5, 2)))
    assert len(np.unique(there.labels_.compute())) == c
    one = ANCMM(1).fit(da.from_array(X[:1], chunks=(1, 2)))
    assert one.labels_.compute().tolist() == [0]


def test_data_frames_stores_and_other_numbers(client, tmp_path):
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    zarr = pytest.importorskip("zarr")
    X = clear()
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(13)])
    expected = ANCMM(3, n_neighbors=10).fit(X).labels_
    model = ANCMM(3, n_neighbors=10).fit(dd.from_pandas(frame, npartitions=3))
    np.testing.assert_array_equal(model.labels_.compute(), expected)
    assert model.feature_names_in_.tolist() == list(frame.columns)
    frame.to_parquet(tmp_path / "x.parquet")
    model = ANCMM(3, n_neighbors=10).fit(dd.read_parquet(tmp_path / "x.parquet"))
    np.testing.assert_array_equal(model.labels_.compute(), expected)
    store = zarr.create_array(
        store=str(tmp_path / "x.zarr"), shape=X.shape, chunks=(25, 13), dtype="f8"
    )
    store[:] = X
    model = ANCMM(3, n_neighbors=10).fit(store)
    np.testing.assert_array_equal(model.labels_.compute(), expected)
    assert model.labels_.chunks == ((25, 25, 10),)
    whole = (X * 1000).astype(np.int32)
    expected = ANCMM(3, n_neighbors=10).fit(whole.astype(float)).labels_
    model = ANCMM(3, n_neighbors=10).fit(da.from_array(whole, chunks=(25, 5)))
    np.testing.assert_array_equal(model.labels_.compute(), expected)


def test_models_are_kept_with_what_they_left_on_workers(client, tmp_path):
    X = clear()
    model = ANCMM(3, n_neighbors=10).fit(da.from_array(X, chunks=(40, 13)))
    save(model, tmp_path / "wine.npz")
    kept = load(tmp_path / "wine.npz")
    np.testing.assert_array_equal(kept.labels_, model.labels_.compute())
    np.testing.assert_array_equal(kept.predict(X), kept.labels_)
    shares = model.memberships(da.from_array(X, chunks=(40, 13)))
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.labels_.compute(), model.labels_.compute())
    assert abs(again.affinity_matrix_ - model.affinity_matrix_).max() == 0


@pytest.mark.parametrize(
    ("X", "options", "said"),
    [
        (np.full((4, 2), np.nan), {}, r"X\[0, 0\] is nan"),
        (np.ones((0, 2)), {}, "X has no rows"),
        (np.ones(4), {}, "shape"),
        (np.ones((4, 2), dtype=complex), {}, "real numbers"),
        (np.eye(4), {"metric": "affinity"}, "matrix of one machine"),
        (np.ma.masked_less(np.eye(4), 0.5), {}, "are masked"),
        (csr_array(np.eye(4)), {}, "points are dense"),
        (np.eye(4), {"precision": "single"}, "are of doubles"),
        (np.eye(4), {"n_clusters": 5}, "larger than the number of points"),
    ],
)
def test_what_cannot_be_fitted(client, X, options, said):
    with pytest.raises(InputError, match=said):
        ANCMM(**{"n_clusters": 2} | options).fit(
            da.from_array(
                X, chunks=2 if isinstance(X, np.ndarray) else 4, asarray=False
            )
        )


def test_a_row_is_named_by_its_number_in_all_of_X(client):
    X = np.random.default_rng(0).random((30, 2))
    X[21, 1] = np.inf
    with pytest.raises(InputError, match=r"X\[21, 1\] is inf"):
        ANCMM(2).fit(da.from_array(X, chunks=(10, 2)))


def test_settings_are_checked(client):
    for name in ("vectors", "blocks", "freed"):
        with (
            dask.config.set({f"bistochastic.{name}": "moon"}),
            pytest.raises(InputError, match=f"bistochastic.{name} is 'moon'"),
        ):
            ANCMM(2).fit(da.ones((9, 2)))


def held(client):
    """Return the names of what the library keeps on the workers."""
    gc.collect()
    names = client.run_on_scheduler(lambda dask_scheduler: [*dask_scheduler.tasks])
    return {name for name in map(str, names) if "bistochastic" in name}


def test_a_fit_that_is_broken_off_frees_the_workers(client):
    X = wine()

    def stop(progress):
        if progress.step == 1:
            raise KeyboardInterrupt

    before = held(client)
    with heard(stop), pytest.raises(KeyboardInterrupt):
        ANCMM(3, n_neighbors=10).fit(da.from_array(X, chunks=(100, 13)))
    for _ in range(100):
        if held(client) <= before:
            break
        time.sleep(0.1)
    assert held(client) <= before


def test_a_fit_leaves_nothing_but_its_results(client):
    before = held(client)
    model = ANCMM(3, n_neighbors=10).fit(da.from_array(clear(), chunks=(40, 13)))
    model.__getstate__()
    gc.collect()
    futures = client.run_on_scheduler(
        lambda dask_scheduler: [
            str(key)
            for key, task in dask_scheduler.tasks.items()
            if task.state == "memory" and task.who_wants
        ]
    )
    assert {key for key in futures if "bistochastic" in key} <= before


def test_numbers_of_rows_need_not_be_known(client):
    X = np.random.default_rng(0).random((40, 3))
    Z = da.from_array(X, chunks=(15, 3))
    Z = Z[Z[:, 0] > 0.2]
    assert np.isnan(Z.shape[0])
    model = ANCMM(1, n_neighbors=5).fit(Z)
    assert sum(model.labels_.chunks[0]) == (X[:, 0] > 0.2).sum()
    short = Z.map_blocks(lambda x: x[:, 1:], dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(InputError, match=r"say \(nan, 3\)"):
        ANCMM(2).fit(short)


def test_without_a_client():
    code = (
        "import dask.array as da\n"
        "from bistochastic import ANCMM\n"
        "try:\n    ANCMM(2).fit(da.ones((9, 2)))\n"
        "except ValueError as error:\n    print(error)\n"
    )
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "no client is active" in done.stdout


def test_a_worker_may_die():
    X = wine()
    expected = ANCMM(3, n_neighbors=10).fit(X).labels_
    with (
        local_cluster(processes=True, silence_logs=50) as cluster,
        Client(cluster),
    ):
        victim = next(iter(cluster.workers.values()))
        killed = []

        def kill(progress):
            if progress.step == 2 and not killed:
                killed.append(victim.process.pid)
                os.kill(killed[0], signal.SIGKILL)

        with heard(kill):
            model = ANCMM(3, n_neighbors=10).fit(da.from_array(X, chunks=(100, 13)))
        assert killed
        np.testing.assert_array_equal(model.labels_.compute(), expected)


@pytest.mark.parametrize(("refine", "device"), [("local", None), ("triangles", "cpu")])
def test_filters_and_devices_of_workers(client, monkeypatch, refine, device):
    if device:
        pytest.importorskip("torch")
    for name in ("SMALL", "MEDIUM"):  # no dense solver on either side
        monkeypatch.setattr(ky_fan, name, 100)
    X, _ = make_blobs(250, 8, centers=4, cluster_std=2.0, random_state=1)
    options = {"n_clusters": 4, "n_neighbors": 8, "refine": refine}
    here = ANCMM(**options).fit(X)
    Z = da.from_array(X, chunks=((100, 0, 150), 8))
    there = ANCMM(**options, device=device).fit(Z)
    np.testing.assert_array_equal(there.labels_.compute(), here.labels_)
    assert abs(there.affinity_matrix_ - here.affinity_matrix_).max() < 1e-9


def test_memberships_after_an_approximate_search(client):
    X, _ = make_blobs(900, 8, centers=3, cluster_std=2.0, random_state=0)
    Z = da.from_array(X, chunks=(450, 8))
    model = ANCMM(3, n_neighbors=8, neighbors=0.9, refine=None).fit(Z)
    assert model.history_[0]["recall"] < 1
    shares = model.memberships(Z)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    with pytest.raises(InputError, match="not the data"):
        model.memberships(Z + 1.0)
