"""Files out: whole or not at all."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy.sparse import csr_array, load_npz

from bistochastic.core.errors import OutputError
from bistochastic.io import read_matrix, write_graph, write_labels, write_summary
from bistochastic.io.writing import replacing

LABELS = np.array([0, 1, 1])


def test_labels_keep_the_ids(tmp_path):
    file = tmp_path / "a.csv"
    write_labels(file, LABELS, ids=["a", "b,c", 'd"'], id_name="plant")
    assert file.read_text() == 'plant,cluster\na,0\n"b,c",1\n"d""",1\n'
    write_labels(tmp_path / "b.tsv", LABELS)
    assert (tmp_path / "b.tsv").read_text() == "row\tcluster\n1\t0\n2\t1\n3\t1\n"


def test_labels_as_parquet(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    labels = np.array([0, None, 1], dtype=object)
    write_labels(
        tmp_path / "a.parquet", labels, ids=[7, 8, 9], columns={"p": [1.0] * 3}
    )
    held = pq.read_table(tmp_path / "a.parquet").to_pydict()
    assert held == {"row": [7, 8, 9], "cluster": [0, None, 1], "p": [1.0] * 3}


def test_formulas_are_made_harmless(tmp_path):
    ids = ["=cmd|' /C calc'!A0", "-5", "+x", "@SUM(A1)", "\tx", "fine", "-x"]
    assert write_labels(tmp_path / "a.csv", range(7), ids=ids, id_name="=id") == 6
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert [line[0] for line in lines] == ["'", "'", "-", "'", "'", "'", "f", "'"]
    assert write_labels(tmp_path / "b.csv", range(7), ids=ids, raw=True) == 0
    assert "\n=cmd" in (tmp_path / "b.csv").read_text()


def test_graphs(tmp_path):
    S = csr_array(np.array([[0.5, 0.5], [0.5, 0.5]]))
    for name in ("a.npz", "a.mtx", "a.npy"):
        write_graph(tmp_path / name, S)
        found = read_matrix(tmp_path / name)[0]
        found = found.toarray() if hasattr(found, "toarray") else found
        np.testing.assert_array_equal(found, S.toarray())
    assert load_npz(tmp_path / "a.npz").shape == (2, 2)
    with pytest.raises(OutputError, match=r"\.npz"):
        write_graph(tmp_path / "a.csv", S)


def test_summaries_are_json_for_any_program(tmp_path):
    held = {"a": np.arange(2), "b": np.float64(np.nan), "c": (1, "x"), 3: tmp_path}
    write_summary(tmp_path / "a.json", held)
    found = json.loads((tmp_path / "a.json").read_text())
    assert found == {"a": [0, 1], "b": None, "c": [1, "x"], "3": str(tmp_path)}


def test_nothing_is_overwritten_unasked(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("mine")
    with pytest.raises(OutputError, match="--force"):
        write_labels(file, LABELS)
    assert file.read_text() == "mine"
    write_labels(file, LABELS, force=True)
    assert file.read_text().startswith("row")
    with pytest.raises(OutputError, match="folder"):
        write_labels(tmp_path / "no" / "a.csv", LABELS)
    with pytest.raises(OutputError, match="folder"):
        write_summary(tmp_path, {})


def broken_off(file, error):
    with replacing(file, force=True) as stream:
        stream.write(b"new")
        raise error


def written_slowly(file):
    with replacing(file) as stream:
        stream.write(b"mine")
        file.write_text("theirs")


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, MemoryError])
def test_a_block_that_fails_leaves_what_was_there(tmp_path, error):
    file = tmp_path / "a.bin"
    file.write_text("old")
    with pytest.raises(error):
        broken_off(file, error)
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_full_disk_is_said(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="No space left") as caught:
        write_labels(tmp_path / "a.csv", LABELS)
    assert "as it was" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_another_file_that_came_meanwhile_is_kept(tmp_path):
    file = tmp_path / "a.csv"
    with pytest.raises(OutputError, match="while"):
        written_slowly(file)
    assert file.read_text() == "theirs"
    assert list(tmp_path.iterdir()) == [file]


def test_permissions_and_links_stay(tmp_path):
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    write_labels(link, LABELS, force=True)
    assert link.is_symlink()
    assert real.read_text().startswith("row")
    assert real.stat().st_mode & 0o777 == 0o640
    mask = os.umask(0o022)
    try:
        write_labels(tmp_path / "new.csv", LABELS)
    finally:
        os.umask(mask)
    assert (tmp_path / "new.csv").stat().st_mode & 0o777 == 0o644


WRITER = """
import sys, numpy as np
from scipy.sparse import random as random_matrix
from bistochastic.io import write_graph
S = random_matrix(3000, 3000, 0.02, format="csr", random_state=0)
print("ready", flush=True)
while True:
    write_graph(sys.argv[1], S, force=True)
"""


def test_killed_while_writing_at_any_moment(tmp_path, thorough):
    file = tmp_path / "a.npz"
    write_graph(file, csr_array(np.eye(3)))
    chance = random.Random(0)
    killed_inside = 0
    for _ in range(10 if thorough else 2):
        worker = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(file)], stdout=subprocess.PIPE
        )
        assert worker.stdout.readline()
        time.sleep(chance.uniform(0.0, 0.3))
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        worker.stdout.close()
        assert load_npz(file).shape in ((3, 3), (3000, 3000))
        left = [path for path in tmp_path.iterdir() if path != file]
        killed_inside += bool(left)
        for path in left:
            assert path.suffix == ".part"
            path.unlink()
    assert killed_inside  # otherwise nothing was tried
