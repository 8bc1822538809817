"""What is done to the columns of a table, told and done again to new rows."""

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
from bistochastic.cli.console import INPUT
from bistochastic.io import load
from commands import ROLES, WINE, run


def test_z_scores_are_those_of_scikit_learn(wine):
    from sklearn.preprocessing import StandardScaler

    from bistochastic import ANCMM

    run("cluster", "wine.csv", "-c", 3, *ROLES, "--model", "m.model")
    X = StandardScaler().fit_transform(WINE.data)
    expected = ANCMM(3, random_state=0).fit(X)
    np.testing.assert_array_equal(load(wine / "m.model").labels_, expected.labels_)


def test_texts_and_missing_values(wine):
    texts = run("cluster", "holes.csv", "-c", 3, "--id", "bottle", code=INPUT)
    assert "'color' is 'light'" in texts.stderr
    assert "--encode" in texts.stderr
    roles = ("--id", "bottle", "--label", "cultivar", "--encode")
    holes = run("cluster", "holes.csv", "-c", 3, *roles, code=INPUT)
    assert "row 6 of column 'alcohol' is missing; in all 2 values" in holes.stderr
    for word in ("--impute", "--drop-missing", "--drop"):
        assert word in holes.stderr
    done = run("cluster", "holes.csv", "-c", 3, *roles, "--impute", "median")
    assert "2 missing values filled by the median" in done.stderr
    done = run(
        "cluster", "holes.csv", "-c", 3, *roles, "--drop-missing", "--labels", "-"
    )
    lines = done.stdout.splitlines()
    assert (lines[6], len(lines)) == ("w5,", 179)
    assert "2 rows with missing values left out" in done.stderr


def test_predict_does_to_columns_what_cluster_did(wine):
    roles = ("--id", "bottle", "--label", "cultivar", "--encode", "--impute", "mean")
    run(
        "cluster",
        "holes.csv",
        "-c",
        3,
        *roles,
        "--model",
        "m.model",
        "--labels",
        "l.csv",
    )
    names = (wine / "holes.csv").read_text().splitlines()[0].split(",")
    lines = [line.split(",") for line in (wine / "holes.csv").read_text().splitlines()]
    order = np.random.default_rng(0).permutation(len(names))
    turned = "\n".join(",".join(line[i] for i in order) for line in lines)
    (wine / "turned.csv").write_text(turned)
    done = run(
        "predict", "m.model", "turned.csv", "--id", "bottle", "--label", "cultivar"
    )
    found = [line.rsplit(",", 1)[0] for line in done.stdout.splitlines()]
    assert found == (wine / "l.csv").read_text().splitlines()
    assert "accuracy" in done.stderr
    new = turned.replace("light", "green")
    (wine / "new.csv").write_text(new)
    assert "'green'" in run("predict", "m.model", "new.csv", "--id", "bottle").stderr
    (wine / "few.csv").write_text("alcohol\n1\n")
    done = run("predict", "m.model", "few.csv", code=INPUT)
    assert "no column 'malic_acid'" in done.stderr


@pytest.mark.parametrize("metric", ["precomputed", "affinity"])
def test_pairs_of_rows_are_not_scaled(wine, metric):
    from sklearn.metrics import pairwise_distances
    from sklearn.preprocessing import scale

    D = pairwise_distances(scale(WINE.data))
    np.save("d.npy", D if metric == "precomputed" else np.exp(-(D**2) / 20))
    done = run("cluster", "d.npy", "-c", 3, "--metric", metric)
    assert "3 clusters of 178 rows" in done.stdout
    assert "as they are" in done.stderr


def test_columns_that_count_rows_are_pointed_at(wine):
    lines = (wine / "wine.csv").read_text().splitlines()
    lines = [
        lines[0],
        *(f"{i}," + line.split(",", 1)[1] for i, line in enumerate(lines[1:])),
    ]
    (wine / "counted.csv").write_text("\n".join(lines))
    words = (
        "cluster",
        "counted.csv",
        "-c",
        3,
        "--label",
        "cultivar",
        "--drop",
        "color",
    )
    assert "--id 'bottle'" in run(*words).stderr
    assert "counts the rows" not in run(*words, "--id", "bottle").stderr


def test_predict_reads_as_cluster_did(wine):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) + 8 * (np.arange(60)[:, None] % 2)
    lines = ["a;b;kind"]
    for i, (a, b, _) in enumerate(X):
        first = "-999" if i == 7 else f"{1000 + a:.3f}".replace(".", ",")
        lines.append(f"{first};{b:.3f};{i % 2}".replace(".", ","))
    lines[5] = lines[5].rsplit(";", 1)[0] + ";x"
    (wine / "eu.csv").write_text("\n".join(lines))
    words = ["--decimal", ",", "--missing", "-999", "--impute", "median", "--encode"]
    run("cluster", "eu.csv", "-c", 2, *words, "--model", "m.model", "--labels", "l.csv")
    done = run("predict", "m.model", "eu.csv")
    found = [line.rsplit(",", 1)[0] for line in done.stdout.splitlines()]
    assert found == (wine / "l.csv").read_text().splitlines()
    del lines[5]  # the only text of the column
    lines[3] = ";" + lines[3].split(";", 1)[1]  # a gap
    (wine / "new.csv").write_text("\n".join(lines))
    assert len(run("predict", "m.model", "new.csv").stdout.splitlines()) == 60
    lines[1] = "1e6;" + lines[1].split(";", 1)[1]
    (wine / "far.csv").write_text("\n".join(lines))
    assert "far outside" in run("predict", "m.model", "far.csv").stderr
    (wine / "text.csv").write_text("a;b;kind\n1;viel;0\n")
    done = run("predict", "m.model", "text.csv", code=INPUT)
    assert "when the model was made" in done.stderr


def test_predict_wants_as_many_columns_without_names(wine):
    np.save("x.npy", WINE.data[:, :2])
    np.save("wide.npy", WINE.data[:, :3])
    run("cluster", "x.npy", "-c", 3, "--model", "m.model")
    done = run("predict", "m.model", "wide.npy", code=INPUT)
    assert "3 columns to use, and the model was made of 2" in " ".join(
        done.stderr.split()
    )


def test_predict_takes_sparse_rows_for_a_scaled_model(wine):
    from scipy.io import mmwrite
    from scipy.sparse import csr_array

    np.save("x.npy", WINE.data)
    mmwrite("x.mtx", csr_array(WINE.data))
    run("cluster", "x.npy", "-c", 3, "--model", "m.model")
    dense, sparse = (
        run("predict", "m.model", "x.npy"),
        run("predict", "m.model", "x.mtx"),
    )
    assert dense.stdout == sparse.stdout
