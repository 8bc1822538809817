"""Parameters beyond all measure: a sentence, or a fit; never an error of a library."""

import numpy as np
import pytest
from joblib import cpu_count
from sklearn.neighbors import NearestNeighbors

import bistochastic
from bistochastic import ANCMM, DSDC, DoublyStochasticSpectral, InputError
from bistochastic.core.jobs import workers
from bistochastic.io import read_table
from bistochastic.io.models import _classes

X = np.random.default_rng(0).normal(size=(30, 20)) + 9 * np.arange(30)[:, None] // 10
S = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 50)
HUGE = (10**30, 10**5000)  # Python does not write numbers of 5,000 digits
COUNTS = {
    "n_clusters", "n_neighbors", "min_cluster_size", "candidates", "max_iter", "n_jobs",
    "n_init", "n_components", "random_state", "verbose",
}  # fmt: skip


def refusal(function, *args, **options):
    """Return the sentence with which a call is refused, or nothing."""
    try:
        function(*args, **options)
    except InputError as error:
        return str(error)
    return ""


def parameters():
    return [
        (name, parameter)
        for name, kind in _classes().items()
        for parameter in sorted(COUNTS & set(kind().get_params()))
    ]


@pytest.mark.parametrize(("name", "parameter"), parameters())
@pytest.mark.parametrize("value", [*HUGE, -HUGE[1]], ids=["1e30", "1e5000", "-1e5000"])
@pytest.mark.filterwarnings("ignore")
def test_huge_numbers_are_refused_or_taken(name, parameter, value):
    known = _classes()[name]().get_params()
    options = {"n_clusters": 3} if "n_clusters" in known else {}
    model = _classes()[name](**options | {parameter: value})
    said = refusal(model.fit, S if name == "DoublyStochasticScaler" else X)
    assert said == "" or parameter in said
    assert len(said) < 300


@pytest.mark.parametrize(
    "model",
    [
        DSDC(3, n_init=10**30),
        ANCMM(3, n_jobs=10**30),
        DoublyStochasticSpectral(3, n_init=10**7),
    ],
)
def test_starts_and_jobs_have_a_limit_in_words(model):
    with pytest.raises(InputError, match="must be at most 1,000,000"):
        model.fit(X)


@pytest.mark.parametrize("value", HUGE, ids=["1e30", "1e5000"])
def test_functions_refuse_or_take_huge_numbers(value):
    for function, points, names in (
        (bistochastic.marcus_mapping, S, ("max_iter", "tol")),
        (bistochastic.entropic_plan, S, ("max_iter", "tol", "omega")),
        (bistochastic.project_doubly_stochastic, S, ("max_iter", "tol")),
        (bistochastic.adaptive_neighbors_graph, X, ("n_neighbors", "n_jobs")),
        (bistochastic.estimate_n_clusters, X, ("n_neighbors", "max_clusters")),
    ):
        for name in names:
            said = refusal(function, points, **{name: value})
            assert said == "" or name in said
    with pytest.raises(InputError, match="max_memory must be at most"):
        read_table(__file__, format="csv", max_memory=value)
    with pytest.raises(InputError, match="max_memory must be a whole number"):
        read_table(__file__, format="csv", max_memory="much")


def test_no_more_threads_are_started_than_there_are_processors(monkeypatch):
    """A thread for each of a million jobs ended in "can't start new thread"."""
    seen = []
    search = NearestNeighbors.kneighbors

    def kneighbors(self, *args, **options):
        seen.append(self.n_jobs)
        return search(self, *args, **options)

    monkeypatch.setattr(NearestNeighbors, "kneighbors", kneighbors)
    ANCMM(3, n_neighbors=5, metric="manhattan", n_jobs=10**6).fit(X)
    assert seen
    assert all(number is None or number <= cpu_count() for number in seen)
    assert workers(10**6) == workers(-1) == cpu_count()
    assert workers(1) == 1
