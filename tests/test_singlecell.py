"""Clusters in an AnnData, as scanpy's own tools leave them."""

import sys

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

anndata = pytest.importorskip("anndata")
pytest.importorskip("natsort")

from bistochastic import ANCMM, InputError  # noqa: E402
from bistochastic.core.errors import MissingError  # noqa: E402
from bistochastic.singlecell import ancmm  # noqa: E402

X, Y = make_blobs(240, 12, centers=12, cluster_std=0.8, random_state=0)


def cells(**more):
    adata = anndata.AnnData(X.astype(np.float32), **more)
    adata.obsm["X_pca"] = X[:, :10].copy()
    adata.obs["kind"] = (Y % 3).astype(str)
    adata.obs["kind"] = adata.obs["kind"].astype("category")
    return adata


def test_what_is_added():
    adata = cells()
    before = set(adata.obs) | set(adata.uns) | set(adata.obsp)
    assert ancmm(adata, 12) is None
    added = (set(adata.obs) | set(adata.uns) | set(adata.obsp)) - before
    assert added == {"ancmm", "ancmm_connectivities", "ancmm_distances"}
    labels = adata.obs["ancmm"]
    assert labels.cat.categories.tolist() == [str(i) for i in range(12)]  # not 0 1 10
    model = ANCMM(12, random_state=0).fit(X[:, :10])
    np.testing.assert_array_equal(labels.astype(int), model.labels_)
    params = adata.uns["ancmm"]["params"]
    assert params["n_clusters"] == 12
    assert params["use_rep"] == "X_pca"
    assert params["random_state"] == 0
    assert params["n_neighbors"] == model.n_neighbors_
    assert adata.uns["ancmm"]["stability"] == model.stability_
    S = adata.obsp["ancmm_connectivities"]
    wanted = model.affinity_matrix_.toarray()
    np.fill_diagonal(wanted, 0)
    np.testing.assert_allclose(S.toarray(), wanted)
    D = adata.obsp["ancmm_distances"].tocoo()
    far = np.linalg.norm(X[D.row, :10] - X[D.col, :10], axis=1)
    np.testing.assert_allclose(D.data, far, rtol=1e-6)


def test_representations_and_graphs():
    adata = cells()
    ancmm(adata, 12, use_rep="X", key_added="a", n_neighbors=10)
    ancmm(adata, 12, n_pcs=4, key_added="b")
    assert adata.uns["b"]["params"]["n_pcs"] == 4
    model = ANCMM(12, n_neighbors=10, random_state=0).fit(X.astype(np.float32))
    np.testing.assert_array_equal(adata.obs["a"].astype(int), model.labels_)
    graph = csr_matrix(np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / 9))
    adata.obsp["mine"] = graph
    ancmm(adata, 12, obsp="mine", key_added="c")
    assert adjusted_rand_score(Y, adata.obs["c"]) > 0.95
    adata.uns["other"] = {"connectivities_key": "mine"}
    ancmm(adata, 12, neighbors_key="other", key_added="d")
    assert (adata.obs["c"] == adata.obs["d"]).all()
    del adata.obsm["X_pca"]
    ancmm(adata, 12, key_added="e")
    assert adata.uns["e"]["params"]["use_rep"] == "X"
    sparse = anndata.AnnData(csr_matrix(np.maximum(X, 0)))
    ancmm(sparse, 5, metric="cosine")
    assert sparse.uns["ancmm"]["params"]["metric"] == "cosine"


def test_some_cells_only():
    adata = cells()
    ancmm(adata, 4, restrict_to=("kind", ["1"]))
    found = adata.obs["ancmm_R"]
    assert "ancmm_connectivities" not in adata.obsp
    names = [f"1,{i}" for i in range(4)]
    assert found.cat.categories.tolist() == ["0", *names, "2"]
    inside = (adata.obs["kind"] == "1").to_numpy()
    model = ANCMM(4, random_state=0).fit(X[inside, :10])
    said = [int(name.split(",")[1]) for name in found[inside]]
    np.testing.assert_array_equal(said, model.labels_)
    assert found[~inside].tolist() == adata.obs["kind"][~inside].tolist()
    ancmm(adata, 8, restrict_to=("kind", ["1", "2"]), key_added="mine")
    assert adata.obs["mine"].str.startswith("1-2,").sum() == 160
    with pytest.raises(InputError, match="no category '9'"):
        ancmm(adata, 2, restrict_to=("kind", ["9"]))
    with pytest.raises(InputError, match=r"no \.obs"):
        ancmm(adata, 2, restrict_to=("sort", ["9"]))


def test_copies_views_and_files(tmp_path):
    adata = cells()
    other = ancmm(adata, 3, copy=True)
    assert "ancmm" in other.obs
    assert "ancmm" not in adata.obs
    view = adata[:120]
    ancmm(view, 3)
    assert not view.is_view
    assert view.obs["ancmm"].size == 120
    assert "ancmm" not in adata.obs
    adata.write_h5ad(tmp_path / "a.h5ad")
    backed = anndata.read_h5ad(tmp_path / "a.h5ad", backed="r")
    ancmm(backed, 3)
    assert (backed.obs["ancmm"] == other.obs["ancmm"]).all()
    with pytest.raises(InputError, match="to_memory"):
        ancmm(backed, 3, use_rep="X")
    with pytest.raises(InputError, match="to_memory"):
        ancmm(backed, 3, copy=True)
    backed.file.close()
    other.write_h5ad(tmp_path / "b.h5ad")
    again = anndata.read_h5ad(tmp_path / "b.h5ad")
    assert again.obs["ancmm"].cat.categories.tolist() == ["0", "1", "2"]
    assert again.uns["ancmm"]["params"]["n_clusters"] == 3


def test_what_cannot_be_used(monkeypatch):
    adata = cells()
    for options, text in (
        ({"use_rep": "X_umap"}, "there are X_pca"),
        ({"obsp": "none"}, "There is no .obsp"),
        ({"neighbors_key": "neighbors"}, "run sc.pp.neighbors"),
        ({"obsp": "a", "neighbors_key": "b"}, "one of them"),
        ({"obsp": "a", "use_rep": "X"}, "one of them"),
        ({"obsp": "a", "metric": "cosine"}, "affinities"),
        ({"n_pcs": 11}, "has 10 columns"),
    ):
        with pytest.raises(InputError, match=text):
            ancmm(adata, 3, **options)
    assert set(adata.obs) == {"kind"}
    wide = anndata.AnnData(np.random.default_rng(0).random((30, 60)))
    with pytest.raises(InputError, match=r"sc\.pp\.pca"):
        ancmm(wide, 3)
    monkeypatch.setitem(sys.modules, "natsort", None)
    with pytest.raises(MissingError, match=r"bistochastic\[singlecell\]"):
        ancmm(adata, 3)


@pytest.fixture(scope="module")
def blood():
    sc = pytest.importorskip("scanpy")
    pytest.importorskip("leidenalg")
    return sc, sc.datasets.pbmc68k_reduced()


@pytest.mark.filterwarnings("ignore")  # of scanpy and its libraries
def test_scanpy_goes_on_from_there(blood):
    sc, adata = blood
    ancmm(adata, 8)
    sc.tl.umap(adata, neighbors_key="ancmm")
    assert np.isfinite(adata.obsm["X_umap"]).all()
    sc.tl.paga(adata, "ancmm", neighbors_key="ancmm")
    assert adata.uns["paga"]["connectivities"].nnz > 0
    sc.tl.leiden(adata, neighbors_key="ancmm", key_added="both")
    assert adata.obs["both"].nunique() >= 8
    sc.tl.rank_genes_groups(adata, "ancmm")
    sc.tl.dendrogram(adata, "ancmm")
    ancmm(adata, 8, neighbors_key="neighbors", key_added="graph")
    sc.tl.umap(adata, neighbors_key="graph")
    sc.tl.paga(adata, "graph", neighbors_key="graph")


@pytest.mark.filterwarnings("ignore")
def test_cell_types_are_found_about_as_well_as_by_leiden(blood):
    sc, adata = blood
    types = adata.obs["bulk_labels"]
    low, high = 0.01, 4.0
    for _ in range(30):
        middle = (low + high) / 2
        sc.tl.leiden(adata, middle)
        number = adata.obs["leiden"].nunique()
        if number == 10:
            break
        low, high = (middle, high) if number < 10 else (low, middle)
    assert number == 10
    ancmm(adata, 10)
    found = [adjusted_rand_score(types, adata.obs[k]) for k in ("ancmm", "leiden")]
    assert found[0] > 0.35
    assert found[0] > found[1] - 0.1
