"""Arrays and matrices: what comes in, and what hostile files do not do."""

import io
import os
import pickle
import zipfile

import numpy as np
import pytest
from scipy import io as scipy_io
from scipy.sparse import coo_array, csr_array, issparse, save_npz

from bistochastic.core.errors import FileError, InputError
from bistochastic.io import read_matrix, read_table
from selection import some

X = np.random.default_rng(0).normal(size=(6, 3))
S = csr_array(np.array([[2.0, 1, 0], [1, 0, 3], [0, 3, 1]]))


def refused(path, words, **options):
    with pytest.raises(FileError, match=words) as caught:
        read_table(path, **options)
    assert path.name in str(caught.value)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int16, bool])
def test_npy_is_mapped_not_read(tmp_path, kind):
    np.save(tmp_path / "a.npy", (5 * X).astype(kind))
    table = read_table(tmp_path / "a.npy")
    np.testing.assert_array_equal(table.values, (5 * X).astype(kind))
    assert isinstance(table.values, np.memmap)
    assert table.names == ["1", "2", "3"]


def test_npz_has_points_and_labels(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=np.arange(6))
    table = read_table(tmp_path / "a.npz")
    np.testing.assert_array_equal(table.values, X)
    np.testing.assert_array_equal(table.labels, np.arange(6))
    np.savez_compressed(tmp_path / "b.npz", first=X, second=X + 1)
    refused(tmp_path / "b.npz", "name one with --key")
    table = read_table(tmp_path / "b.npz", key="second")
    np.testing.assert_array_equal(table.values, X + 1)
    refused(tmp_path / "b.npz", "has no array 'third'", key="third")


def test_sparse_matrices(tmp_path):
    save_npz(tmp_path / "a.npz", S)
    save_npz(tmp_path / "c.npz", S.tocsc())
    scipy_io.mmwrite(tmp_path / "a.mtx", S)
    scipy_io.mmwrite(tmp_path / "s.mtx", S, symmetry="symmetric")
    scipy_io.savemat(tmp_path / "a.mat", {"S": S})
    for name in ("a.npz", "c.npz", "a.mtx", "s.mtx", "a.mat"):
        found, names = read_matrix(tmp_path / name)
        assert issparse(found)
        assert names is None
        np.testing.assert_array_equal(found.toarray(), S.toarray())


def test_mat_has_points_and_labels(tmp_path):
    for form in ("4", "5"):
        held = {"X": X, "y": np.arange(6.0), "note": "text"}
        scipy_io.savemat(tmp_path / "a.mat", held, format=form)
        table = read_table(tmp_path / "a.mat")
        np.testing.assert_array_equal(table.values, X)
        np.testing.assert_array_equal(table.labels, np.arange(6))
    refused(tmp_path / "a.mat", "no matrix of numbers there", key="note")


def test_mat_from_version_7_3(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.mat", "w", userblock_size=512) as file:
        file["X"] = X.T
        file["y"] = np.arange(6.0)[None]
    table = read_table(tmp_path / "a.mat")
    np.testing.assert_array_equal(table.values, X)
    np.testing.assert_array_equal(table.labels, np.arange(6))
    with h5py.File(tmp_path / "s.mat", "w") as file:
        group, C = file.create_group("S"), S.tocsc()
        group.attrs["MATLAB_sparse"] = np.uint64(3)
        group["data"], group["ir"], group["jc"] = C.data, C.indices, C.indptr
    np.testing.assert_array_equal(
        read_matrix(tmp_path / "s.mat")[0].toarray(), S.toarray()
    )


class Harm:
    """Leaves a mark if it is unpickled."""

    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return os.mkdir, (str(self.place),)


def test_pickles_are_not_run(tmp_path):
    mark = tmp_path / "mark"
    harm = np.array([Harm(mark)], dtype=object)
    np.save(tmp_path / "a.npy", harm, allow_pickle=True)
    np.savez(tmp_path / "a.npz", X=harm)
    np.savez(tmp_path / "y.npz", X=X, y=np.array([Harm(mark)] * 6, dtype=object))
    refused(tmp_path / "a.npy", "pickled")
    refused(tmp_path / "a.npz", "pickled")
    assert read_table(tmp_path / "y.npz").labels is None
    (tmp_path / "p.npy").write_bytes(pickle.dumps(Harm(mark)))
    refused(tmp_path / "p.npy", "not an NPY file")
    assert not mark.exists()
    mark.mkdir()
    with pytest.raises(FileExistsError):  # so harm would have been done
        pickle.loads(pickle.dumps(Harm(mark)))


def header(shape, kind="<f8"):
    out = io.BytesIO()
    held = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(out, held)
    return out.getvalue()


def test_headers_that_promise_too_much(tmp_path):
    file = tmp_path / "a.npy"
    file.write_bytes(header((1 << 19, 1 << 19)) + bytes(800))
    refused(file, "cut off")
    archive = tmp_path / "a.npz"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("X.npy", header((1 << 19, 1 << 19)) + bytes(800))
    refused(archive, "cut off")
    for size in ("300000000000 3 5", "3 3 99999999999"):
        file = tmp_path / "a.mtx"
        file.write_text(
            f"%%MatrixMarket matrix coordinate real general\n{size}\n1 1 2.0\n"
        )
        refused(file, "would take|cut off")


def test_a_bomb_in_an_archive(tmp_path):
    archive = tmp_path / "a.npz"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("X.npy", header((1 << 12, 1 << 12)) + bytes(8 << 24))
    assert archive.stat().st_size < 1 << 20
    refused(archive, "would take", max_memory=1 << 24)
    assert read_table(archive, max_memory=1 << 28).values.shape == (1 << 12, 1 << 12)


@pytest.mark.parametrize(
    "entry", some(["4 1 2.0", "1 1 x", "0 1 2.0", "1 9 2.0", "1"], 2)
)
def test_entries_of_mtx_outside_of_the_matrix(tmp_path, entry):
    file = tmp_path / "a.mtx"
    file.write_text(f"%%MatrixMarket matrix coordinate real general\n3 3 1\n{entry}\n")
    refused(file, "Matrix Market")


def test_a_matrix_is_finite_and_square(tmp_path):
    file = tmp_path / "a.mtx"
    file.write_text("%%MatrixMarket matrix coordinate real general\n3 3 1\n2 3 nan\n")
    with pytest.raises(FileError, match="row 2, column 3"):
        read_matrix(file)
    np.save(tmp_path / "a.npy", X)
    with pytest.raises(FileError, match=r"shape \(6, 3\)"):
        read_matrix(tmp_path / "a.npy")


def test_a_sparse_matrix_with_indices_outside_of_it(tmp_path):
    for name, wrong in (("indices", 9), ("indptr", 9)):
        held = {"data": S.data, "indices": S.indices.copy(), "indptr": S.indptr.copy()}
        held[name][-1] = wrong
        np.savez(tmp_path / "a.npz", **held, shape=S.shape, format=b"csr")
        refused(tmp_path / "a.npz", "damaged")
    save_npz(tmp_path / "b.npz", coo_array(S))
    refused(tmp_path / "b.npz", "tocsr")


def test_readers_that_crash_or_hang_are_kept_apart(tmp_path, monkeypatch):
    """A NUL inside of a number makes SciPy 1.17 read beyond its memory."""
    file = tmp_path / "a.mtx"
    text = "%%MatrixMarket matrix array real general\n%\n12 3\n" + "1.25\n" * 20
    file.write_bytes(text.encode() + b"6.404226504\x00432821E-")
    refused(file, "damaged")
    from bistochastic.io import sandbox as apart

    child = tmp_path / "child.py"
    monkeypatch.setattr(apart, "CHILD", child)
    scipy_io.mmwrite(file, S)
    child.write_text("import os; os.write(1, b'started'); os.abort()")
    refused(file, "damaged.* crashed")
    child.write_text("import os; os.abort()")
    with pytest.raises(InputError, match=r"crashed .* before it came to the file"):
        read_matrix(file)


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.mtx", "a.mat", "a.h5ad"])
def test_nonsense_is_refused(tmp_path, name):
    if name.endswith("h5ad"):
        pytest.importorskip("anndata")
    file = tmp_path / name
    file.write_bytes(b"nonsense" * 100)
    refused(file, "not an?|damaged")
    file.write_bytes(b"")
    refused(file, "empty")


def test_other_kinds_of_arrays_are_refused(tmp_path):
    for wrong, words in (
        (X + 1j, "complex"),
        (np.array([["a", "b"]]), "texts"),
        (np.zeros((2, 2, 2)), "shape"),
        (np.zeros((0, 2)), "empty"),
        (np.zeros(2, dtype=[("a", float)]), "records"),
    ):
        np.save(tmp_path / "a.npy", wrong)
        refused(tmp_path / "a.npy", words)
    np.save(tmp_path / "a.npy", np.arange(5))
    assert read_table(tmp_path / "a.npy").values.shape == (5, 1)
