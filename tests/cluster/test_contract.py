"""The contract of scikit-learn, for every clusterer: add yours to the list."""

import os
import subprocess
import sys

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from bistochastic import (
    ANCMM,
    CAN,
    CLR,
    DSDC,
    ERCAN,
    PCAN,
    DoublyStochasticSpectral,
)

REASONS = {
    "check_estimator_sparse_array": "takes every predict_proba for a classifier's",
    "check_estimator_sparse_matrix": "takes every predict_proba for a classifier's",
}
SQUARE = {"check_clustering": "passes 50 x 2 points whatever the metric"}


def _assigns_sparse(estimator):
    sparse = estimator.__sklearn_tags__().input_tags.sparse
    return sparse and hasattr(estimator, "predict_proba")


def _checked(*estimators):
    """Run scikit-learn's checks on estimators, apart from those that cannot hold."""
    return parametrize_with_checks(
        list(estimators),
        expected_failed_checks=lambda estimator: (
            (REASONS if _assigns_sparse(estimator) else {})
            | (SQUARE if estimator.metric in ("precomputed", "affinity") else {})
        ),
    )


pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{said}:UserWarning")
    for said in (
        "The graph has",
        "The given graph has no total support",
        "The affinities have no total",
        "The rows of the graph sum to",
    )
]


@_checked(
    ANCMM(),
    ANCMM(3, metric="precomputed"),
    CLR(3),
    DSDC(3),
    DoublyStochasticSpectral(3),
    PCAN(3, n_neighbors=5),
)
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.thorough
@_checked(
    ANCMM.paper(3, 5),
    ANCMM(3, graph_update="exact", refine=None),
    ANCMM(3, alpha="row", self_neighbor="lazy", refine="both"),
    ANCMM(3, metric="affinity"),
    CAN(3, n_neighbors=5),
    CAN(3, n_neighbors=5, candidates="global"),
    CLR(3, norm="l1", metric="affinity"),
    DSDC(3, metric="precomputed"),
    DoublyStochasticSpectral(3, affinity="adaptive", n_neighbors=5),
    DoublyStochasticSpectral(3, affinity="precomputed"),
    ERCAN(3, n_neighbors=5),
)
def test_the_contract_of_scikit_learn_with_other_parameters(estimator, check):
    check(estimator)


@pytest.mark.thorough
def test_no_check_of_the_contract_skips_itself():
    """Those of the array API do, unless a variable is set before SciPy is loaded."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            __file__,
            "-q",
            "-k",
            "array_api",
            "-ofilterwarnings=default",
        ],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"SCIPY_ARRAY_API": "1"},
    )
    if done.returncode == 5:
        pytest.skip("this scikit-learn has no checks of the array API")
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
