"""The examples run and show what their text says.

The slow ones do so with --all; the gallery of the site runs them anyhow.
"""

import re
import runpy
from pathlib import Path

import matplotlib as mpl
import pytest
from sklearn.metrics import adjusted_rand_score

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Return a function that runs an example and gives its variables and picture."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    def run(name):
        file = tmp_path / "picture.png"
        monkeypatch.setattr(plt, "show", lambda: plt.savefig(file))
        monkeypatch.setenv("BISTOCHASTIC_POINTS", "20000")
        made = runpy.run_path(EXAMPLES / f"plot_{name}.py")
        plt.close("all")
        assert file.stat().st_size > 20_000  # an empty figure has 4,000
        return made

    return run


def test_every_example_has_a_test_here():
    names = {file.stem.removeprefix("plot_") for file in EXAMPLES.glob("plot_*.py")}
    tested = re.findall(r'run\("(\w+)"\)', Path(__file__).read_text())
    assert names == set(tested)
    assert len(names) >= 10


def test_kernel(run, capsys):
    made = run("kernel")
    assert made["agreement"]["kernel"] < 0.1
    assert made["agreement"]["doubly stochastic"] > 0.95
    assert "adjusted Rand index" in capsys.readouterr().out


def test_contact_map(run, capsys):
    made = run("contact_map")
    assert made["report"].zero_rows.tolist() == list(range(180, 190))
    assert made["everything"].converged
    assert made["balanced"].dropped.size == 22
    assert made["agreement"] > 0.99
    assert abs(made["row_sums"] - 1).max() < 1e-9
    assert "SupportError" in capsys.readouterr().out


@pytest.mark.thorough
def test_sparse_transport(run, capsys):
    made = run("sparse_transport")
    assert made["costs"] == sorted(made["costs"], reverse=True)
    assert abs(made["costs"][-1] - made["cheapest"]) < 1e-4
    assert made["result"].support.kind == "partial"
    assert "pairs are within reach" in capsys.readouterr().out


def test_clusters_are_the_components(run):
    made = run("clusters")
    for name, (_, y, c) in made["sets"].items():
        model = made["models"][name]
        assert model.n_components_ == c
        assert adjusted_rand_score(y, model.labels_) == 1.0


@pytest.mark.thorough
def test_image_segments(run, capsys):
    run("image_segments")
    assert capsys.readouterr().out.count("pieces") >= 4


def test_digits(run, capsys):
    made = run("digits")
    assert made["model"].n_components_ == 10
    said = capsys.readouterr().out
    scores = {
        name: float(re.search(rf"{name}\s+ACC ([\d.]+)", said).group(1))
        for name in ("ANCMM", "K-Means", "SpectralClustering")
    }
    assert scores["ANCMM"] > max(scores["K-Means"], scores["SpectralClustering"])


@pytest.mark.filterwarnings("ignore")  # of scanpy and its libraries
def test_single_cell(run):
    pytest.importorskip("scanpy")
    pytest.importorskip("leidenalg")
    made = run("single_cell")
    adata = made["adata"]
    assert adata.obs["ancmm"].nunique() == 8
    assert adata.obs["leiden"].nunique() == 8
    assert made["table"].to_numpy().sum() == adata.n_obs


def test_new_points(run):
    made = run("new_points")
    assert made["model"].predict(made["far"]).shape == (4,)
    assert made["away"].tolist() == [True, True, True, True]


@pytest.mark.thorough
def test_choosing_c(run, capsys):
    run("choosing_c")
    said = capsys.readouterr().out
    assert said.count("clusters, score") == 3
    assert re.search(r"blobs.*: 5 clusters, score 1.00", said)


@pytest.mark.thorough
def test_imbalanced(run, capsys):
    run("imbalanced")
    said = capsys.readouterr().out
    found = [float(x) for x in re.findall(r"adjusted Rand index ([\d.]+)", said)]
    assert max(found) > 0.95
    assert min(found) < 0.5


@pytest.mark.thorough
def test_million(run):
    made = run("million")
    assert made["n"] == 20_000
    assert made["model"].n_components_ == 20


def test_pipeline(run):
    pytest.importorskip("pandas")
    made = run("pipeline")
    assert made["by_silhouette"] < made["by_agreement"]


@pytest.mark.thorough
def test_before_after(run):
    made = run("before_after")
    assert made["shares"][1] < made["shares"][0]
    assert len(made["ways"]) == 5
