"""What a page says: members, columns, signs, scores, each against brute force."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_wine, make_blobs, make_moons
from sklearn.metrics import confusion_matrix, pairwise_distances
from sklearn.preprocessing import StandardScaler

from bistochastic import ANCMM, CAN, InputError
from bistochastic.report import facts, verdict
from bistochastic.report.geometry import sureness
from bistochastic.report.subject import Run, number, short

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
    return verdict.verdict(verdict.signs(run, sureness(model, X)), facts.compared(run))


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
    assert verdict.signs(run, None) == []
    assert verdict.verdict([])[0] == "fair"
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
    assert short("a\nb\x00c" + "d" * 100) == "a b c" + "d" * 54 + "…"
    numbers = (0, 1234.5, 0.04567, 1.5e9, -3.14159, float("nan"), 1e-9)
    assert [number(x) for x in numbers] == [
        "0", "1,234", "0.0457", "1.50e+09", "-3.14", "", "1.00e-09",
    ]  # fmt: skip


def test_what_was_not_tested_is_not_called_clear():
    X, _ = make_blobs(150, 4, centers=3, random_state=3)
    assert judged(X, 3)[0] == "good"
    for options in ({"n_neighbors": 10}, {"metric": "affinity"}):
        A = np.exp(-(pairwise_distances(X) ** 2)) if "metric" in options else X
        model = ANCMM(3, **options).fit(A)
        run = Run(model, A)
        level, text = verdict.verdict(verdict.signs(run, sureness(model, A)))
        assert level == "fair"
        assert "no other number of neighbors was tried" in text
    every = ANCMM(150).fit(X)
    run = Run(every, X)
    found = verdict.signs(run, sureness(every, X))
    assert [one["value"] for one in found] == ["150"]
    assert verdict.verdict(found)[0] == "poor"


def test_series_are_taken_by_position():
    pandas = pytest.importorskip("pandas")
    X, _ = make_blobs(30, 3, centers=2, random_state=0)
    model = ANCMM(2).fit(X)
    ids = pandas.Series([f"id{i}" for i in range(30)], index=range(29, -1, -1))
    truth = pandas.Series(["a", None, "b"] * 10, dtype="string")
    run = Run(model, X, ids=ids, truth=truth)
    assert run.row(0) == "id0"
    assert facts.compared(run)["rows"] == 20
    masked = np.ma.array(np.arange(30) % 2, mask=np.arange(30) < 10)
    assert facts.compared(Run(model, X, truth=masked))["rows"] == 20
    pairs = [("a", 1), ("b", 2), None] * 10
    assert facts.compared(Run(model, X, truth=pairs))["classes"] == 2
    with pytest.raises(InputError, match="one label a row"):
        Run(model, X, truth=np.zeros((30, 1)))


def test_numbers_of_every_kind():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    counts = rng.integers(60, 90, (90, 6)).astype(np.uint8)
    for block in range(3):
        counts[30 * block : 30 * block + 30, 2 * block : 2 * block + 2] += 150
    for S in (csr_array(counts), counts, counts.astype(object)):
        model = ANCMM(3).fit(S)
        found = facts.columns(Run(model, S))
        assert [{one["name"] for one in part[:2]} for part in found] == [
            {"column 1", "column 2"}, {"column 3", "column 4"},
            {"column 5", "column 6"},
        ]  # fmt: skip
    frame = pandas.DataFrame(counts, columns=list("abcdef")).astype("Int64")
    frame["flag"] = counts[:, 0] > 100
    with pytest.warns(UserWarning, match="Scale the columns"):
        run = Run(ANCMM(3).fit(frame), frame)
    assert run.X.dtype == np.float64
    assert len(facts.columns(run)) == 3


def test_constant_columns_set_nothing_apart():
    X, _ = make_blobs(120, 4, centers=3, random_state=0)
    X = np.c_[X, np.full(120, 1 / 3), np.zeros(120)]
    for part in facts.columns(Run(ANCMM(3).fit(X), X, list("abcdef"))):
        assert not {"e", "f"} & {one["name"] for one in part}


def test_other_data_are_refused():
    X, _ = make_blobs(60, 3, centers=3, random_state=0)
    for model in (ANCMM(3).fit(X), CAN(3).fit(X)):
        with pytest.raises(InputError, match="not the data of `fit`"):
            Run(model, X[::-1])
