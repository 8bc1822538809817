"""What users set by np.seterr, and warnings as errors, do not break what they call."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

import bistochastic
from bistochastic import (
    ANCMM,
    CAN,
    CLR,
    DSDC,
    ERCAN,
    PCAN,
    DoublyStochasticScaler,
    DoublyStochasticSpectral,
    adaptive_neighbors_graph,
    entropic_plan,
    estimate_n_clusters,
    marcus_mapping,
    project_doubly_stochastic,
    support,
)

CLUSTERERS = [ANCMM, CAN, CLR, ERCAN, PCAN, DSDC, DoublyStochasticSpectral]
LATER = ("affinity_matrix_", "scaling_", "embedding_")
AFTER = ("predict", "predict_proba", "transform", "memberships", "approximation")


@pytest.fixture(autouse=True)
def strict():
    """Raise on everything that NumPy can raise on, and on warnings but our own."""
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)  # remarks about data
        warnings.simplefilter("error", RuntimeWarning)
        yield


def allowed(call, *args, **options):
    """Call; errors about input, ours or scikit-learn's, are what users may get."""
    try:
        return call(*args, **options)
    except ValueError:
        return None


def scaled(values, factor):
    with np.errstate(all="ignore"):
        return values * factor


def nasty_matrices():
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 12):
        A = rng.random((n, n))
        A = (A + A.T) / 2
        for unit in (1e-300, 1e-150, 1.0, 1e150, 1e300):
            yield scaled(A, unit)
        w = rng.uniform(-150, 150, (n, n))
        yield 10.0 ** ((w + w.T) / 2)
        yield 1e-160 * np.eye(n)
        yield np.where(A > 0.5, A, 0) + 1e-200 * np.eye(n)
        yield np.zeros((n, n))


def nasty_points():
    rng = np.random.default_rng(1)
    for n in (2, 3, 5, 30):
        X = rng.standard_normal((n, 2))
        for unit in (1e-300, 1e-160, 1e-150, 0.0, 1.0, 1e150, 1e160, 1e300):
            yield scaled(X, unit)
        far = X.copy()
        far[0] *= 1e150
        yield far
        mixed = 1e-150 * X
        mixed[-1] = 1e100
        yield mixed


@pytest.fixture
def matrices(thorough):
    """Return all nasty matrices, or each fourth, some of every size."""
    return list(nasty_matrices())[:: 1 if thorough else 4]


@pytest.fixture
def points(thorough):
    """Return all nasty points, or each third, some of every size."""
    return list(nasty_points())[:: 1 if thorough else 3]


@pytest.mark.parametrize("kind", [np.asarray, csr_array, "single"])
def test_functions_of_matrices_set_their_own_state(kind, matrices):
    for S in matrices:
        with np.errstate(all="ignore"):
            K = S.astype(np.float32) if kind == "single" else kind(S)
        far = np.full(len(S), 1e100)
        allowed(support, K)
        for method in ("auto", "newton", "damped", "alternating", "fixed_point"):
            options = {"method": method, "unsupported": "prune", "max_iter": 200}
            allowed(marcus_mapping, K, **options)
            allowed(marcus_mapping, K, initial=far, marginals=1 / far, **options)
        for omega in (1e-300, 1.0, 100.0, 1e9):
            allowed(entropic_plan, K, omega=omega, unsupported="prune")
        for method in ("newton", "alternating"):
            allowed(project_doubly_stochastic, K, method=method, max_iter=200)
        for name in ("marcus", "zass_shashua_2005", "frobenius"):
            scaler = DoublyStochasticScaler(name, max_iter=200)
            if allowed(scaler.fit, K) is not None:
                allowed(scaler.transform, K)
                allowed(scaler.fit_transform, K)


@pytest.mark.parametrize("method", CLUSTERERS)
def test_clusterers_set_their_own_state(method, points):
    for X in points:
        for options in ({}, {"n_neighbors": 3})[: 1 + (method is not DSDC)]:
            model = allowed(method(2, **options).fit, X)
            for name in LATER:
                getattr(model, name, None)
            for name in AFTER:
                if hasattr(model, name):
                    allowed(getattr(model, name), X)


def test_variants_of_clusterers_set_their_own_state(matrices, points):
    for X in points:
        allowed(ANCMM(2, n_neighbors=3, graph_update="exact").fit, X)
        allowed(ANCMM.paper(2, 3).fit, X)
        for affinity in ("self_tuning", "adaptive"):
            model = DoublyStochasticSpectral(2, affinity=affinity, n_neighbors=2)
            allowed(model.fit, X)
        allowed(adaptive_neighbors_graph, X, 2)
        allowed(estimate_n_clusters, X, max_clusters=3)
    for S in matrices:
        for method in (ANCMM, CLR):
            allowed(method(min(2, len(S)), metric="affinity").fit, S)
        model = DoublyStochasticSpectral(min(2, len(S)), affinity="precomputed")
        allowed(model.fit, S)


def test_the_state_of_the_caller_is_left_as_it_was():
    before = np.geterr()
    marcus_mapping([[1.0, 2.0], [2.0, 16.0]])
    with pytest.raises(ValueError, match="overflow"):
        ANCMM(2, n_neighbors=3).fit(
            scaled(np.random.default_rng(0).random((9, 2)), 1e300)
        )
    assert np.geterr() == before


def test_no_warning_of_numpy_leaks_by_default(points):
    with np.errstate(all="warn"):
        for X in points:
            for method in (DSDC, ERCAN, DoublyStochasticSpectral):
                allowed(method(2).fit, X)


def test_warnings_point_at_the_line_of_the_caller():
    S = np.array([[1.0, 0, 0], [0, 0, 1], [0, 1, 1]])
    X = np.random.default_rng(0).standard_normal((30, 2))
    calls = {
        "the function": lambda: marcus_mapping(1 + S, max_iter=1, tol=1e-9),
        "the transformer": lambda: DoublyStochasticScaler().fit(S),
        "a clusterer": lambda: ANCMM(2, n_neighbors=3, max_iter=1, tol=1e-17).fit(X),
    }
    for name, call in calls.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        assert {one.filename for one in caught} == {__file__}, name


def test_every_public_function_is_in_this_file():
    functions = {
        name
        for name in bistochastic.__all__
        if not isinstance(getattr(bistochastic, name), type)
    }
    assert functions <= set(globals())
    estimators = {
        name
        for name in bistochastic.__all__
        if hasattr(getattr(bistochastic, name), "fit")
    }
    assert estimators == {m.__name__ for m in (*CLUSTERERS, DoublyStochasticScaler)}
