"""Mutated files for every reader: a table or a sentence, never anything else.

Run with ``python tests/fuzz.py --minutes 20`` (``--only npz``). Each reader works in a
process of its own with bounded memory and time for a file. Readers that `read_apart`
keeps in another process are called directly, so that many files are read; what kills
or stops one is read again as a user would, and must end in a sentence then. What went
wrong is kept in ``build/fuzz``. Ends with 1 if anything was found.
"""

import argparse
import gzip
import io
import json
import random
import resource
import signal
import subprocess
import sys
import time
import warnings
import zipfile
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy import io as scipy_io
from scipy.sparse import csr_array, save_npz

MEMORY = 3 << 30  # bytes that a worker may map
LIMIT = 1 << 24  # bytes that a reader may take for numbers
PATIENCE = 20  # seconds for one file
FILES = 20_000  # for one worker, whose address space libraries fill little by little
NUMBERS = (0, 1, 2, 7, 8, 127, 128, 255, 256, 32767, 65535, 2**31 - 1, 2**32 - 1, 2**63)
WORDS = (
    b"nan", b"inf", b"-1", b"1e999", b"\xff\xfe", b"\x00", b'"', b",", b"\n", b"\r\n",
    b"99999999999", b"object", b"O8", b"'descr'", b"(3, 1000000000000)", b"complex",
    b"pattern", b"skew-symmetric", b"array", b"=1+1", b"{}", b"[", b"null",
)  # fmt: skip


def seeds(folder):
    """Return small good files by the reader that they are for."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3))
    S = rng.random((8, 8)) * (rng.random((8, 8)) < 0.4)
    S = csr_array(S + S.T)
    made = {}

    def keep(kind, name, write):
        path = folder / name
        write(path)
        made.setdefault(kind, []).append((name, path.read_bytes()))

    text = "id,a,b,c\n" + "".join(
        f"r{i},{x[0]},{x[1]},t{i % 3}\n" for i, x in enumerate(X)
    )
    keep("csv", "a.csv", lambda p: p.write_text(text))
    keep(
        "csv",
        "b.tsv",
        lambda p: p.write_text(text.replace(",", "\t").replace("\n", "\r\n")),
    )
    keep("csv", "c.csv.gz", lambda p: p.write_bytes(gzip.compress(text.encode())))
    keep("csv", "d.csv", lambda p: p.write_text('a,b\n"1\n",2\n,NA\n"x ""y""",4\n'))
    keep("npy", "a.npy", lambda p: np.save(p, X))
    keep("npy", "b.npy", lambda p: np.save(p, X.astype(np.float32).T.copy(order="F")))
    keep("npy", "c.npy", lambda p: np.save(p, np.array([[1, "a"]], dtype=object)))
    keep("npz", "a.npz", lambda p: np.savez(p, X=X, y=np.arange(12)))
    keep("npz", "b.npz", lambda p: np.savez_compressed(p, arr_0=X))
    keep("npz", "c.npz", lambda p: save_npz(p, S))
    keep("mtx", "a.mtx", lambda p: scipy_io.mmwrite(p, S))
    keep("mtx", "b.mtx", lambda p: scipy_io.mmwrite(p, X))
    keep("mtx", "c.mtx.gz", lambda p: _packed_mtx(p, S))
    keep("mat", "a.mat", lambda p: scipy_io.savemat(p, {"X": X, "y": np.arange(12)}))
    keep(
        "mat",
        "b.mat",
        lambda p: scipy_io.savemat(
            p, {"S": S.tocsc(), "t": "text", "c": {"d": [1, 2]}}, do_compression=True
        ),
    )
    keep("mat", "c.mat", lambda p: scipy_io.savemat(p, {"X": X}, format="4"))
    if find_spec("pyarrow"):
        _with_pyarrow(keep, X)
    if find_spec("h5py"):
        _with_h5py(keep, X, S)
    if find_spec("anndata"):
        _with_anndata(keep, X, S)
    keep("model", "a.model", lambda p: _model(p, X))
    return made


def _packed_mtx(path, S):
    out = io.BytesIO()
    scipy_io.mmwrite(out, S)
    path.write_bytes(gzip.compress(out.getvalue()))


def _with_pyarrow(keep, X):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(
        {
            "a": X[:, 0],
            "b": X[:, 1].astype(np.float32),
            "t": ["x", "y", None] * 4,
            "i": np.arange(12),
        }
    )
    keep("parquet", "a.parquet", lambda p: pq.write_table(table, p))
    keep(
        "parquet",
        "b.parquet",
        lambda p: pq.write_table(
            table, p, compression="gzip", row_group_size=5, use_dictionary=False
        ),
    )


def _with_h5py(keep, X, S):
    import h5py

    def mat73(path):
        with h5py.File(path, "w", userblock_size=512) as file:
            file["X"] = X.T
            file["y"] = np.arange(12.0)[None]
            group = file.create_group("S")
            group.attrs["MATLAB_sparse"] = np.uint64(8)
            C = S.tocsc()
            group["data"], group["ir"], group["jc"] = C.data, C.indices, C.indptr

    def cool(path):
        U = S.tocoo()
        upper = U.row <= U.col
        with h5py.File(path, "w") as file:
            file.attrs.update(
                {
                    "format": "HDF5::Cooler",
                    "format-version": 3,
                    "bin-type": "fixed",
                    "bin-size": 10,
                    "storage-mode": "symmetric-upper",
                    "nbins": 8,
                    "nnz": int(upper.sum()),
                    "nchroms": 1,
                }
            )
            file["chroms/name"] = np.array([b"chr1"])
            file["chroms/length"] = np.array([80], dtype=np.int32)
            file["bins/chrom"] = np.zeros(8, dtype=np.int32)
            file["bins/start"] = np.arange(0, 80, 10, dtype=np.int32)
            file["bins/end"] = np.arange(10, 90, 10, dtype=np.int32)
            file["pixels/bin1_id"] = U.row[upper].astype(np.int64)
            file["pixels/bin2_id"] = U.col[upper].astype(np.int64)
            file["pixels/count"] = np.ceil(10 * U.data[upper]).astype(np.int32)
            file["indexes/chrom_offset"] = np.array([0, 8])
            ends = np.searchsorted(np.sort(U.row[upper]), np.arange(9))
            file["indexes/bin1_offset"] = ends

    keep("mat73", "d.mat", mat73)
    if find_spec("cooler"):
        keep("cool", "a.cool", cool)


def _with_anndata(keep, X, S):
    import anndata
    import pandas as pd

    obs = pd.DataFrame(
        {"t": pd.Categorical(list("ab") * 6)}, index=[f"c{i}" for i in range(12)]
    )
    made = anndata.AnnData(csr_array(abs(X)), obs=obs)
    made.obsm["X_pca"] = X[:, :2]
    keep("h5ad", "a.h5ad", made.write_h5ad)
    dense = anndata.AnnData(X.astype(np.float32), obs=obs)
    keep("h5ad", "b.h5ad", dense.write_h5ad)


def _model(path, X):
    from bistochastic import ANCMM
    from bistochastic.io import save

    save(ANCMM(2, n_neighbors=4).fit(X), path)


def mutated(data, rng):
    """Return a file with some of its bytes changed."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        at = rng.randrange(len(data) + 1)
        what = rng.randrange(8)
        if what == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif what == 1 and data:
            data[at % len(data)] = rng.randrange(256)
        elif what == 2:
            del data[at:]
        elif what == 3:
            del data[at : at + rng.randrange(1, 40)]
        elif what == 4:
            begin = rng.randrange(len(data) + 1)
            data[at:at] = data[begin : begin + rng.randrange(1, 60)]
        elif what == 5:
            word = rng.choice(WORDS)
            data[at : at + rng.choice((0, len(word)))] = word
        elif what == 6:
            size = rng.choice((1, 2, 4, 8))
            number = rng.choice(NUMBERS) % (1 << 8 * size)
            data[at : at + size] = number.to_bytes(size, rng.choice(("little", "big")))
        else:
            data[at : at + rng.randrange(1, 30)] = bytes(
                rng.randrange(256) for _ in range(4)
            )
    return bytes(data)


def rezipped(data, rng):
    """Return an archive whose members were changed, and which is sound as such."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        names = old.namelist()
        chosen = rng.choice(names)
        for name in names:
            held = old.read(name)
            new.writestr(name, mutated(held, rng) if name == chosen else held)
    return out.getvalue()


APART = {
    "cool": {},
    "h5ad": {"key": None, "id": None, "label": "t"},
    "mat": {"key": None},
    "mat73": {"key": None},
    "mtx": {},
}


def read(kind, path, apart=False):
    """Read a file as its reader does, or as a user would, and touch what comes out."""
    from bistochastic.io import load, read_matrix, read_table
    from bistochastic.io.sandbox import READERS

    if kind == "model":
        model = load(path, max_memory=LIMIT)
        model.predict(np.zeros((2, model.n_features_in_)))
    elif kind in APART and not apart:
        READERS[kind.removesuffix("73")](path, limit=LIMIT, **APART[kind])
    elif kind == "cool":
        read_matrix(path, max_memory=LIMIT)
    else:
        table = read_table(path, encode=True, max_memory=LIMIT)
        table.values.sum()


def contained(kind, path):
    """Tell whether a user is told of a file that kills or stops its reader."""
    from bistochastic.core.errors import FileError

    if kind not in APART:
        return False
    try:
        read(kind, path, apart=True)
    except FileError:
        return True
    except Exception:
        return False
    return True  # it was in the way of the worker's bounds, not of a user's


def work(kind, seconds, seed, folder):
    """Mutate and read until the time is over; print what happened as JSON."""
    from bistochastic.core.errors import InputError

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    rng, folder = random.Random(seed), Path(folder)
    counts = {"files": 0, "refused": 0, "read": 0}
    with TemporaryDirectory() as place:
        known = seeds(Path(place))[kind]
    end = time.monotonic() + seconds
    while time.monotonic() < end and counts["files"] < FILES:
        name, data = rng.choice(known)
        zipped = data[:2] == b"PK" and rng.random() < 0.5
        file = folder / f"{kind}-now-{name}"
        file.write_bytes((rezipped if zipped else mutated)(data, rng))
        signal.alarm(PATIENCE)
        try:
            read(kind, file)
            counts["read"] += 1
        except InputError:
            counts["refused"] += 1
        except Exception as error:
            kept = folder / f"{kind}-{type(error).__name__}-{counts['files']}-{name}"
            kept.write_bytes(file.read_bytes())
            counts.setdefault("wrong", []).append(f"{kept.name}: {error!r}"[:300])
        signal.alarm(0)
        counts["files"] += 1
        file.unlink(missing_ok=True)
    print(json.dumps(counts))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", nargs=2)
    given = parser.parse_args()
    folder = Path("build/fuzz")
    folder.mkdir(parents=True, exist_ok=True)
    if given.work:
        return work(given.work[0], float(given.work[1]), given.seed, folder)
    with TemporaryDirectory() as place:
        kinds = given.only or list(seeds(Path(place)))
    share = 60 * given.minutes / len(kinds)
    total = found = caught = 0
    worker = [sys.executable, __file__]
    for kind in kinds:
        left, seed = share, given.seed
        while left > 1:
            begin = time.monotonic()
            done = subprocess.run(
                [*worker, "--seed", str(seed), "--work", kind, str(left)],
                capture_output=True,
                text=True,
            )
            left -= time.monotonic() - begin
            seed += 1
            if done.returncode == 0:
                counts = json.loads(done.stdout.strip().splitlines()[-1])
                total += counts["files"]
                wrong = counts.pop("wrong", [])
                found += len(wrong)
                print(kind, counts, *wrong, sep="\n  ", flush=True)
            else:
                said = (done.stderr.strip().splitlines() or [""])[-1]
                for file in folder.glob(f"{kind}-now-*"):
                    kept = file.rename(folder / file.name.replace("now", f"end-{seed}"))
                    told = contained(kind, kept)
                    caught, found = caught + told, found + (not told)
                    what = "a sentence" if told else "NOT TOLD"
                    print(f"{kind}: {done.returncode} {said}: {what}", flush=True)
    print(
        f"{total:,} files in {given.minutes:g} minutes: {caught} crashes or "
        f"hangs of libraries, contained, and {found} wrong"
    )
    return found > 0


if __name__ == "__main__":
    sys.exit(main())
