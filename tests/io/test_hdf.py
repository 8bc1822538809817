"""Annotated cells and maps of contacts."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from bistochastic.core.errors import FileError
from bistochastic.io import read_matrix, read_table

X = np.random.default_rng(0).poisson(1.0, size=(10, 4)).astype(np.float32)


@pytest.fixture
def cells(tmp_path):
    anndata = pytest.importorskip("anndata")
    import pandas as pd

    obs = pd.DataFrame(
        {"kind": pd.Categorical(["b", "t"] * 4 + [None, "t"]), "number": range(10)},
        index=[f"cell{i}" for i in range(10)],
    )
    var = pd.DataFrame(index=["g1", "g2", "g3", "mt1"])
    made = anndata.AnnData(csr_array(X), obs=obs, var=var)
    made.layers["log"] = np.log1p(X)
    made.obsm["X_umap"] = X[:, :2]
    made.write_h5ad(tmp_path / "a.h5ad")
    return tmp_path / "a.h5ad", made


def test_cells(cells):
    table = read_table(cells[0], label="kind")
    np.testing.assert_array_equal(table.values.toarray(), X)
    assert table.names == ["g1", "g2", "g3", "mt1"]
    assert (table.ids[3], table.id_name) == ("cell3", "cell")
    assert list(table.labels[-3:]) == ["t", None, "t"]
    assert not table.embedded
    assert read_table(cells[0], drop="mt*").names == ["g1", "g2", "g3"]


def test_representations(cells):
    path, made = cells
    table = read_table(path, key="X_umap")
    assert table.embedded
    np.testing.assert_array_equal(table.values, X[:, :2])
    np.testing.assert_array_equal(read_table(path, key="log").values, np.log1p(X))
    made.obsm["X_pca"] = X[:, :3]
    made.write_h5ad(path)
    table = read_table(path)
    assert table.values.shape == (10, 3)
    assert "X_pca" in table.notes[0]
    assert read_table(path, key="X").values.shape == (10, 4)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"key": "X_tsne"}, "has no 'X_tsne'"), ({"label": "type"}, "no column 'type'"),
     ({"max_memory": 100}, "would take")],
)  # fmt: skip
def test_what_is_wrong_with_cells_is_said(cells, options, words):
    with pytest.raises(FileError, match=words):
        read_table(cells[0], **options)


@pytest.fixture
def contacts(tmp_path):
    cooler = pytest.importorskip("cooler")
    import pandas as pd

    rng = np.random.default_rng(1)
    n = 30
    A = rng.poisson(40 / (1 + np.abs(np.subtract.outer(np.arange(n), np.arange(n)))))
    A = np.triu(A) + np.triu(A, 1).T
    A[[4, 17]] = A[:, [4, 17]] = 0
    i, j = np.nonzero(np.triu(A))
    bins = pd.DataFrame(
        {"chrom": "chr1", "start": 10 * np.arange(n), "end": 10 * np.arange(1, n + 1)}
    )
    pixels = pd.DataFrame({"bin1_id": i, "bin2_id": j, "count": A[i, j]})
    cooler.create_cooler(str(tmp_path / "a.cool"), bins, pixels)
    return tmp_path / "a.cool", A


def test_contacts(contacts):
    S, names = read_matrix(contacts[0])
    np.testing.assert_array_equal(S.toarray(), contacts[1])
    assert names[1] == "chr1:10-20"
    with pytest.raises(FileError, match="bistochastic scale"):
        read_table(contacts[0])
    with pytest.raises(FileError, match="would take"):
        read_matrix(contacts[0], max_memory=100)


def test_resolutions(contacts, tmp_path):
    import cooler

    many = str(tmp_path / "a.mcool")
    cooler.zoomify_cooler(str(contacts[0]), many, [10, 20], chunksize=100)
    with pytest.raises(FileError, match=r"::/resolutions/10\."):
        read_matrix(many)
    S, _ = read_matrix(many + "::/resolutions/10")
    np.testing.assert_array_equal(S.toarray(), contacts[1])
    with pytest.raises(FileError, match="has no /resolutions/7"):
        read_matrix(many + "::/resolutions/7")


def test_a_map_whose_bins_are_none(contacts):
    import h5py

    with h5py.File(contacts[0], "r+") as file:
        file["pixels/bin2_id"][0] = 99
    with pytest.raises(FileError, match="damaged"):
        read_matrix(contacts[0])
