"""Names of files: pipes, names that are not UTF-8, and names with two colons."""

import os
import socket
import subprocess
import sys
from contextlib import closing

import numpy as np
import pytest
from scipy import io as scipy_io
from scipy.sparse import csr_array

from bistochastic import ANCMM
from bistochastic.core.errors import FileError
from bistochastic.io import load, paths, read_matrix, read_table, save
from selection import some

S = np.eye(3) + 1
ENDINGS = (
    ".csv", ".csv.gz", ".parquet", ".npy", ".npz", ".mtx", ".mtx.gz", ".mat", ".h5ad",
    ".cool", ".model",
)  # fmt: skip
READ = """
import sys
from bistochastic.core.errors import FileError
from bistochastic.io import load, read_matrix, read_table
for path in sys.argv[1:]:
    readers = [load] if path.endswith(".model") else [read_table, read_matrix]
    for read in readers:
        try:
            read(path)
        except FileError as error:
            print(error)
"""


def test_pipes_are_refused_and_nothing_hangs(tmp_path):
    """Nobody writes to these pipes: who opens one waits for ever."""
    for ending in ENDINGS:
        os.mkfifo(tmp_path / f"a{ending}")
    done = subprocess.run(
        [sys.executable, "-c", READ, *map(str, tmp_path.iterdir())],
        capture_output=True,
        text=True,
        timeout=60,
    )
    said = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert len(said) == 2 * len(ENDINGS) - 1
    for line in said:
        assert "is a pipe, and files are read more than once" in line
        assert "- reads standard input" in line


def test_sockets_devices_and_open_pipes_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with closing(socket.socket(socket.AF_UNIX)) as end:
        end.bind("a.csv")
        with pytest.raises(FileError, match="is a socket"):
            read_table("a.csv")
    with pytest.raises(FileError, match="is a device"):
        read_table(os.devnull, format="csv")
    ends = os.pipe()  # as bash does for <(command)
    try:
        with pytest.raises(FileError, match="is a pipe"):
            read_table(f"/dev/fd/{ends[0]}", format="csv")
        with pytest.raises(FileError, match="is a pipe"):
            load(f"/dev/fd/{ends[0]}")
    finally:
        for end in ends:
            os.close(end)


def test_names_that_cannot_be_are_refused():
    for name in ("a" * 5000 + ".csv", "a\0.csv"):
        with pytest.raises(FileError, match="cannot be opened"):
            read_table(name)
    with pytest.raises(FileError, match="is a folder"):
        load(".")


@pytest.fixture
def written(tmp_path):
    """Write matrices under a name, and return what was written."""

    def write(name):
        file = tmp_path / name
        np.save(f"{file}.npy", S)
        np.savez(f"{file}.npz", S)
        for ending, write in ((".mtx", scipy_io.mmwrite), (".mat", scipy_io.savemat)):
            with open(f"{file}{ending}", "wb") as stream:
                write(stream, csr_array(S) if ending == ".mtx" else {"X": S})
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            return sorted(tmp_path.iterdir())
        with open(f"{file}.csv", "w") as stream:
            np.savetxt(stream, S, delimiter=",")
        with open(f"{file}.parquet", "wb") as stream:
            pq.write_table(pa.table(dict(zip("abc", S, strict=True))), stream)
        return sorted(tmp_path.iterdir())

    return write


@pytest.mark.parametrize("name", some([os.fsdecode(b"a\xff"), "a::b", "a b\n%s"], 1))
def test_odd_names_are_read(tmp_path, written, name):
    for file in written(name):
        found = read_matrix(file)[0]
        found = found.toarray() if hasattr(found, "toarray") else found
        np.testing.assert_array_equal(found, S)
        file.write_bytes(b"nonsense")
        with pytest.raises(FileError, match=r"a.*(read|damaged|shape|archive|opened)"):
            read_matrix(file)
    save(ANCMM(2), tmp_path / f"{name}.model")
    assert load(tmp_path / f"{name}.model").n_clusters == 2


def test_two_colons_name_a_part_of_a_COOL_file_only(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a::b.csv", "a.csv::b.csv"):
        with pytest.raises(FileError, match=f"^{name}: there is no such file"):
            read_table(name)
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(FileError, match=r"a.csv::b.csv: .*does not name a part"):
        read_table("a.csv::b.csv")
    with pytest.raises(FileError, match=r"^map.mcool: there is no such file"):
        read_matrix("map.mcool::/resolutions/10")
    assert paths.parts("x::y/map.cool::/z") == (paths.Path("x::y/map.cool"), "/z")


def test_links_name_the_same_file(tmp_path):
    file, others = tmp_path / "a", [tmp_path / name for name in "bcd"]
    file.write_text("")
    os.link(file, others[0])
    others[1].symlink_to(file)
    assert all(paths.same(file, other) for other in others[:2])
    assert not paths.same(file, others[2])
    assert paths.same(others[2], tmp_path / "." / "d")
