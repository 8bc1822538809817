"""The examples run and show what their text says."""

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
        made = runpy.run_path(EXAMPLES / f"plot_{name}.py")
        plt.close("all")
        assert file.stat().st_size > 20_000  # an empty figure has 4,000
        return made

    return run


def test_every_example_has_a_test_here():
    names = {file.stem for file in EXAMPLES.glob("plot_*.py")}
    assert names == {
        "plot_clusters",
        "plot_kernel",
        "plot_contact_map",
        "plot_sparse_transport",
    }


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
