"""A minute of what ``python tests/campaign.py`` does at length, and its eyesight."""

import os
import signal
import subprocess
import sys
import warnings
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

import bistochastic
import campaign
from hostile import fits, mappings
from hostile.case import Case

SOME = ["--minutes", "0.15", "--jobs", "1"]
ALL = ["--minutes", "0.7"]


@pytest.mark.first
def test_a_minute_of_hostile_use_breaks_no_promise(thorough):
    words = [sys.executable, campaign.__file__, *(ALL if thorough else SOME)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 violations" in done.stdout


# faults that the campaign has to see, each planted into a function of the library


def _doubled(S):
    if isinstance(S, np.ndarray) and S.flags.writeable:
        S *= 2


def _spoilt(result, factor):
    return replace(result, matrix=result.matrix * factor)


def _lopsided(result):
    M = np.array(
        result.matrix.toarray() if hasattr(result.matrix, "toarray") else result.matrix
    )
    M[0, -1] *= 1 + 1e-15
    return replace(result, matrix=M)


def _raised(error):
    raise error


FAULTS = {
    "doubly stochastic or a warning": lambda S, r: _spoilt(r, 1 + 1e-4),
    "honest numbers": lambda S, r: replace(
        r, residual=0.0, matrix=r.matrix * (1 + 1e-4)
    ),
    "symmetric to the bit": lambda S, r: _lopsided(r),
    "input untouched": lambda S, r: _doubled(S) or r,
    "same twice": lambda S, r: _spoilt(r, 1 + 1e-13 * np.random.rand()),  # noqa: NPY002
    "only documented errors": lambda S, r: _raised(KeyError("x")),
    "only documented warnings": lambda S, r: warnings.warn("x", RuntimeWarning) or r,  # noqa: B028
    "pattern kept": lambda S, r: replace(r, matrix=np.full(r.matrix.shape, 0.5)),
    "finite": lambda S, r: _spoilt(r, np.nan),
    "kind kept": lambda S, r: replace(r, matrix=r.matrix.tolist()),
}


@pytest.mark.parametrize("promise", FAULTS)
def test_a_planted_fault_of_the_mapping_is_seen(monkeypatch, tmp_path, promise):
    mapping, fault = bistochastic.marcus_mapping, FAULTS[promise]
    monkeypatch.setattr(
        bistochastic, "marcus_mapping", lambda S, **kw: fault(S, mapping(S, **kw))
    )
    assert _seen(promise, mappings.marcus, tmp_path)


def _all_joined(n):
    return csr_array(np.full((n, n), 1 / n))


LEARNED = {
    "labels are the components": lambda m: {"labels_": np.arange(m.labels_.size) % 2},
    "exactly c": lambda m: {"affinity_matrix_": _all_joined(m.labels_.size)},
    "honest numbers": lambda m: {"affinity_matrix_": m.affinity_matrix_ * (1 + 1e-3)},
    "labels in order": lambda m: {"labels_": m.labels_.max() - m.labels_},
    "predict gives labels_": lambda m: {"_points": m._points.at(slice(None, None, -1))},
    "unfitted or whole": lambda m: (
        vars(m).pop("labels_") is None or _raised(ValueError)
    ),
}


@pytest.mark.parametrize("promise", LEARNED)
def test_a_planted_fault_of_a_clusterer_is_seen(monkeypatch, tmp_path, promise):
    class Spoilt(bistochastic.ANCMM):
        def fit(self, X, y=None):
            super().fit(X)
            vars(self).update(LEARNED[promise](self))
            return self

    monkeypatch.setattr(bistochastic, "ANCMM", Spoilt, raising=False)
    assert _seen(promise, fits.ancmm, tmp_path)


def test_the_label_of_a_twin_is_no_fault():
    D = np.array([[0.0, 0, 1, 2], [0, 0, 1, 2], [1, 1, 0, 2], [2, 2, 2, 0]])
    labels, found = np.array([0, 1, 1, 2]), np.array([0, 0, 0, 2])
    for given in (D, csr_array((D.ravel(), np.indices((4, 4)).reshape(2, -1)))):
        marked = fits._of_a_twin(given, found, labels)
        assert marked.tolist() == [True, True, False, True]  # 2 is nobody's twin


def _seen(promise, check, folder):
    """Tell whether one of a few cases finds the promise broken."""
    for number in range(40):
        case = Case(7, number)
        with suppress(AttributeError, TypeError, ValueError):  # later checks may fall
            check(case, folder)
        if any(broken == promise for broken, _ in case.violations):
            return True
    return False


def test_a_case_is_the_same_again(tmp_path):
    for number in range(6):
        one, two = (campaign.run_case(3, number, tmp_path) for _ in range(2))
        assert one.kind == two.kind
        assert one.notes == two.notes


def test_a_hang_and_a_crash_are_told(monkeypatch):
    worker = campaign.Worker(0)
    monkeypatch.setattr(campaign, "HANG", 0.0)
    assert worker.run(0)[-1][0][0] == "in time"
    worker._start()
    os.kill(worker.process.pid, signal.SIGKILL)
    worker.process.join()
    assert worker.run(0)[-1][0][0] == "no crash"
