"""The loop on aggregates first: the same promises, whatever the number of points."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons, make_swiss_roll
from sklearn.metrics import adjusted_rand_score

from bistochastic import ANCMM
from bistochastic.cluster import coarse
from bistochastic.metrics import clustering_accuracy
from conftest import need


def moons(n):
    return make_moons(n, noise=0.05, random_state=0)


def blobs(n):
    return make_blobs(n, 8, centers=6, cluster_std=3.0, random_state=0)


@pytest.mark.parametrize(
    ("make", "n"),
    [(moons, 2000), (blobs, 2500), (blobs, 7000)],
    ids=["moons", "blobs", "many blobs"],
)
def test_the_result_keeps_every_promise(make, n):
    X, y = make(n)
    c = len(np.unique(y))
    model = ANCMM(c).fit(X)
    S = model.affinity_matrix_
    assert np.abs(S.sum(axis=1) - 1).max() <= model.tol
    assert abs(S - S.T).max() == 0
    assert model.n_components_ == c == len(np.unique(model.labels_))
    assert model.converged_
    assert clustering_accuracy(y, model.labels_) > 0.97
    again = ANCMM(c).fit(X)
    np.testing.assert_array_equal(again.labels_, model.labels_)
    assert abs(again.affinity_matrix_ - S).max() == 0
    order = np.random.default_rng(1).permutation(n)
    other = ANCMM(c).fit(X[order]).labels_
    assert adjusted_rand_score(other, model.labels_[order]) == 1


def test_trials_are_told_of(monkeypatch):
    X, _ = blobs(2500)
    model = ANCMM(6).fit(X)
    ks = [trial["n_neighbors"] for trial in model.trials_]
    assert ks == [20, 28, 40, 56]
    assert [trial["n_neighbors"] for trial in model.trials_ if trial["kept"]] == [
        model.n_neighbors_
    ]
    for trial in model.trials_:
        assert sum(trial["sizes"]) == 2500
        assert trial["n_components"] == len(trial["sizes"])
    assert model.agreement_.shape == (2500,)
    assert 0.9 < model.stability_ <= 1
    assert model.history_[0]["penalty"] == 0
    monkeypatch.setattr(coarse, "WORTH", 1e9)  # without aggregates
    plain = ANCMM(6).fit(X)
    assert adjusted_rand_score(plain.labels_, model.labels_) > 0.99


def test_a_long_manifold_is_not_cut_into_crumbs():
    X, t = make_swiss_roll(10_000, noise=0.2, random_state=0)
    y = np.digitize(t, np.quantile(t, [0.25, 0.5, 0.75]))
    model = ANCMM(4).fit(X)
    assert np.bincount(model.labels_).min() > 500
    assert clustering_accuracy(y, model.labels_) > 0.75


@pytest.mark.parametrize(
    "options",
    [
        {"candidates": None},
        {"metric": "cosine"},
        {"refine": "both"},
        {"n_neighbors": 12},
        {"min_cluster_size": 50},
        {"scaling": "alternating"},
        {"self_neighbor": "lazy"},
        {"max_iter": 2},
    ],
    ids=str,
)
def test_parameters_go_together_with_aggregates(options):
    X, _ = blobs(1800)
    model = ANCMM(6, **options).fit(X)
    assert model.n_components_ == 6
    assert np.abs(model.affinity_matrix_.sum(axis=1) - 1).max() <= model.tol


def test_duplicates_stay_together():
    X, _ = blobs(1000)
    X = np.repeat(X, 2, axis=0)
    labels = ANCMM(6).fit(X).labels_
    np.testing.assert_array_equal(labels[::2], labels[1::2])


def test_a_given_graph_is_gathered_too():
    X, y = blobs(2500)
    A = ANCMM(2, n_neighbors=15, refine=None, max_iter=1, exact=False)
    with pytest.warns(UserWarning, match="component"):
        A = A.fit(X).affinity_matrix_
    model = ANCMM(6, metric="affinity").fit(A)
    assert model.n_components_ == 6
    assert clustering_accuracy(y, model.labels_) > 0.95


def test_a_device_finds_the_labels_of_the_host(device):
    X, _ = blobs(7000)
    here = ANCMM(6).fit(X)
    there = ANCMM(6, device=device).fit(X)
    assert there.n_neighbors_ == here.n_neighbors_
    np.testing.assert_array_equal(np.asarray(there.labels_), here.labels_)


def test_workers_speak_the_verbs_of_gathering(client, rng):
    need("distributed")
    from bistochastic.graph.aggregates import aggregates
    from bistochastic.places.dask_workers.blocks import Blocks
    from bistochastic.places.dask_workers.client import Recorder
    from bistochastic.places.dask_workers.layout import Layout
    from bistochastic.places.host.csr import Csr

    X, _ = blobs(1500)
    S = ANCMM(6, n_neighbors=10).fit(X).affinity_matrix_
    held = Blocks.of(Layout(Recorder(client, None), [800, 700], caller=True), S)
    here, there = (aggregates(graph, [400])[0] for graph in (Csr(S), held))
    np.testing.assert_array_equal(there.groups, here.groups)
