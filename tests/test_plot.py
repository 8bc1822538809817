"""Pictures: what is drawn is what the model holds."""

import sys

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError

from bistochastic import ANCMM, CAN, InputError, marcus_mapping, plot
from bistochastic.core.errors import MissingError
from bistochastic.report.geometry import sureness

plt = pytest.importorskip("matplotlib.pyplot")
X, _ = make_blobs(200, 3, centers=4, cluster_std=1.5, random_state=0)


@pytest.fixture(scope="module")
def model():
    return ANCMM(4, random_state=0).fit(X)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def every(model):
    S = csr_array(np.ones((5, 5)))
    return {
        "graph": lambda ax: plot.graph(model, X, ax=ax),
        "matrix": lambda ax: plot.matrix(model, ax=ax),
        "convergence": lambda ax: plot.convergence(model, ax=ax),
        "stability": lambda ax: plot.stability(model, ax=ax),
        "confidence": lambda ax: plot.confidence(model, X, ax=ax),
        "scaling": lambda ax: plot.scaling(S, marcus_mapping(S), ax=ax),
    }


def test_each_draws_where_it_is_told_or_makes_an_axes(model):
    for name, draw in every(model).items():
        figure, ax = plt.subplots()
        assert draw(ax) is ax, name
        assert ax.has_data(), name
        assert ax.get_title(), name
        made = draw(None)
        assert made.figure is not figure
        made.figure.canvas.draw()


def test_the_graph_shows_all_points_and_the_heaviest_edges(model):
    ax = plot.graph(model, X, n_edges=100, layout="pca")
    drawn = [c.get_offsets() for c in ax.collections[1:]]
    assert [len(part) for part in drawn] == np.bincount(model.labels_).tolist()
    assert 95 <= len(ax.collections[0].get_segments()) <= 105
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["0", "1", "2", "3"]
    ax = plot.graph(model, X, layout=X[:, :2], scatter_kw={"s": 3}, edges_kw={"lw": 9})
    np.testing.assert_array_equal(
        ax.collections[1].get_offsets(), X[model.labels_ == 0, :2]
    )
    plot.graph(model, X, layout="pca", scatter_kw={"c": "red", "linewidth": 1})
    assert len(plot.graph(model, X, layout="pca", n_edges=0).collections) == 4
    with pytest.raises(InputError, match=r"\(200, 2\)"):
        plot.graph(model, X, layout=X)


def test_confidence_is_sorted_within_clusters(model):
    ax = plot.confidence(model, X)
    own = sureness(model, X).own
    assert f"{own.mean():.2f}" in ax.get_title()
    path = ax.collections[0].get_paths()[0].vertices
    assert path[:, 0].max() == pytest.approx(own[model.labels_ == 0].max())


def test_row_sums_before_and_after():
    S = csr_array(np.array([[2.0, 1], [1, 3]]))
    ax = plot.scaling(S, marcus_mapping(S))
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [3, 4])
    np.testing.assert_allclose(ax.lines[1].get_ydata(), [1, 1], atol=1e-6)
    ax = plot.scaling(S, S * 0)
    assert ax.get_yscale() == "linear"
    with pytest.raises(InputError, match="2 rows before, and 3 after"):
        plot.scaling(S, np.eye(3))
    with pytest.raises(InputError, match="not square"):
        plot.scaling(np.ones((2, 3)), np.ones((2, 3)))


def test_what_cannot_be_drawn(model, monkeypatch):
    with pytest.raises(NotFittedError):
        plot.matrix(ANCMM(3))
    with pytest.raises(InputError, match="no graph to show"):
        plot.matrix(KMeans(3).fit(X))
    other = CAN(3).fit(X)
    with pytest.raises(InputError, match="CAN keeps no other numbers of neighbors"):
        plot.stability(other)
    with pytest.raises(InputError, match="does not tell how sure"):
        plot.confidence(other, X)
    from bistochastic import DoublyStochasticSpectral

    spectral = DoublyStochasticSpectral(3, random_state=0).fit(X)
    with pytest.raises(InputError, match="keeps no"):
        plot.convergence(spectral)
    assert plot.matrix(spectral).has_data()
    for wrong in (X[:50], X[:, 0], np.zeros((200, 9))):
        with pytest.raises(InputError, match="fitted to"):
            plot.graph(model, wrong)
    with pytest.raises(InputError, match="n_blocks"):
        plot.matrix(model, n_blocks=0)
    for odd in (np.ones(3), np.ones((0, 0))):
        with pytest.raises(InputError, match="not square"):
            plot.scaling(odd, odd)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingError, match=r"bistochastic\[plot\]"):
        plot.matrix(model)


def test_clusters_beyond_the_legend():
    many, _ = make_blobs(300, 2, centers=15, cluster_std=0.2, random_state=0)
    model = ANCMM(15, n_neighbors=7).fit(many)
    assert plot.graph(model, many).get_legend() is None
    assert len(plot.confidence(model, many).get_yticks()) == 15
