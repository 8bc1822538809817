"""What a page says: members, columns, signs, scores, each against brute force."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_wine, make_blobs, make_moons
from sklearn.metrics import confusion_matrix, pairwise_distances
from sklearn.preprocessing import StandardScaler

from bistochastic import ANCMM, CAN, InputError
from bistochastic.report import facts
from bistochastic.report.facts import Run
from bistochastic.views import sureness

WINE = load_wine()
SCALER = StandardScaler().fit(WINE.data)


@pytest.fixture(scope="module")
def wine():
    X = SCALER.transform(WINE.data)
    model = ANCMM(3, random_state=0).fit(X)
    run = Run(
        model, X, WINE.feature_names, truth=WINE.target, shift=SCALER.mean_,
        factor=SCALER.scale_, more={"file": "wine.csv"},
    )  # fmt: skip
    return run, sureness(model, X)


def test_the_sentence(wine):
    run, _ = wine
    assert facts.sentence(run) == (
        "178 rows of wine.csv in 13 columns, asked for 3 clusters by ANCMM: that many "
        "came out, of 61, 65 and 52 rows."
    )


def test_columns_are_those_that_differ_most_in_their_own_units(wine):
    run, _ = wine
    for label, found in enumerate(facts.columns(run)):
        inside = run.labels == label
        first, others = WINE.data[inside], WINE.data[~inside]
        effect = (first.mean(0) - others.mean(0)) / WINE.data.std(0)
        order = np.argsort(-np.abs(effect))[:5]
        assert [one["name"] for one in found] == [WINE.feature_names[j] for j in order]
        for one, j in zip(found, order, strict=True):
            assert one["inside"] == pytest.approx(first[:, j].mean())
            assert one["outside"] == pytest.approx(others[:, j].mean())
            assert one["effect"] == pytest.approx(effect[j])


def test_columns_and_members_of_sparse_data_are_the_same(wine):
    run, sure = wine
    sparse = Run(run.model, csr_array(run.X), run.names)
    for one, other in zip(facts.columns(run), facts.columns(sparse), strict=True):
        assert [c["name"] for c in one] == [c["name"] for c in other]
    for one, other in zip(
        facts.members(run, sure), facts.members(sparse, sure), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_typical_rows_are_nearest_to_the_mean(wine):
    run, sure = wine
    for label, found in enumerate(facts.members(run, sure)):
        rows = np.flatnonzero(run.labels == label)
        far = np.linalg.norm(run.X[rows] - run.X[rows].mean(0), axis=1)
        np.testing.assert_array_equal(found, rows[np.argsort(far)[:5]])


def test_uncertain_rows_come_first(wine):
    run, sure = wine
    found = facts.uncertain(run, sure)
    assert [one["confidence"] for one in found] == sorted(
        one["confidence"] for one in found
    )
    shares = run.model.memberships(run.X).toarray()
    for one in found:
        assert one["confidence"] == pytest.approx(
            shares[one["at"], one["cluster"]], abs=1e-4
        )
        if one["second"] >= 0:
            others = shares[one["at"]].copy()
            others[one["cluster"]] = -1
            assert one["second"] == others.argmax()
            assert one["share"] == pytest.approx(others.max(), abs=1e-4)


def test_scores_and_counts(wine):
    run, _ = wine
    found = facts.compared(run)
    np.testing.assert_array_equal(
        found["counts"], confusion_matrix(WINE.target, run.labels)
    )
    assert found["names"] == ["0", "1", "2"]
    partly = [None if at % 2 else f"kind {y}" for at, y in enumerate(WINE.target)]
    found = facts.compared(Run(run.model, run.X, truth=partly))
    assert (found["rows"], found["classes"]) == (89, 3)
    assert facts.compared(Run(run.model, run.X, truth=[None] * 178)) is None
    many = facts.compared(Run(run.model, run.X, truth=range(178)))
    assert many["counts"] is None


def judged(X, c, truth=None):
    model = ANCMM(c, random_state=0).fit(X)
    run = Run(model, X, truth=truth)
    return facts.verdict(facts.signs(run, sureness(model, X)), facts.compared(run))


def test_good_clusters_are_called_good_and_bad_ones_bad():
    blobs, _ = make_blobs(400, 4, centers=4, random_state=3)
    assert judged(blobs, 4)[0] == "good"
    moons, _ = make_moons(400, noise=0.06, random_state=0)
    assert judged(moons, 2)[0] == "good"
    rng = np.random.default_rng(0)
    level, text = judged(rng.normal(size=(600, 10)), 5)
    assert level == "poor"
    assert "Do not trust" in text
    assert judged(rng.random((1000, 2)), 4)[0] != "good"
    assert judged(rng.normal(size=(500, 2)), 3)[0] != "good"
    text = judged(blobs, 4, rng.integers(0, 4, 400))[1]
    assert "not what the given labels" in text


def test_other_estimators_and_pairs():
    X, _ = make_blobs(120, 3, centers=3, random_state=0)
    run = Run(CAN(3).fit(X), X)
    assert facts.signs(run, None) == []
    assert facts.verdict([])[0] == "fair"
    assert facts.uncertain(run, None) == []
    D = pairwise_distances(X)
    model = ANCMM(3, metric="precomputed").fit(D)
    run = Run(model, D)
    assert "given as pairs" in facts.sentence(run)
    assert facts.columns(run) == [[], [], []]
    assert len(facts.members(run, sureness(model, D))) == 3


def test_what_does_not_fit_together():
    X, _ = make_blobs(60, 3, centers=3, random_state=0)
    model = ANCMM(3).fit(X)
    with pytest.raises(InputError, match="fitted to 60"):
        Run(model, X[:50])
    with pytest.raises(InputError, match="ids has 3 entries for 60"):
        Run(model, X, ids=["a", "b", "c"])
    with pytest.raises(InputError, match="names has 2 entries for 3"):
        Run(model, X, names=["a", "b"])
    from sklearn.cluster import KMeans

    with pytest.raises(InputError, match="no graph to show"):
        Run(KMeans(3).fit(X), X)


def test_texts_and_numbers_for_people():
    assert facts.short("a\nb\x00c" + "d" * 100) == "a b c" + "d" * 54 + "…"
    numbers = (0, 1234.5, 0.04567, 1.5e9, -3.14159, float("nan"), 1e-9)
    assert [facts.number(x) for x in numbers] == [
        "0", "1,234", "0.0457", "1.50e+09", "-3.14", "", "1.00e-09",
    ]  # fmt: skip
