"""Saved models: the same predictions, and nothing that could run."""

import json
import random
import warnings
import zipfile

import joblib
import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel

import bistochastic
import tampering
from bistochastic import (
    ANCMM,
    CAN,
    CLR,
    DSDC,
    ERCAN,
    PCAN,
    DoublyStochasticScaler,
    DoublyStochasticSpectral,
)
from bistochastic.core.errors import FileError, InputError, OutputError
from bistochastic.io import load, save
from bistochastic.io import model_checks as fitted
from bistochastic.io.archive import ABOUT
from bistochastic.io.models import load_with_extra

X = load_iris().data[::2] + 0.001 * np.arange(75)[:, None]
MODELS = [
    ANCMM(3), ANCMM(3, n_neighbors=9, metric="cosine"), ANCMM.paper(3, 10), CAN(3),
    CLR(3), ERCAN(3), PCAN(3), DSDC(3), DoublyStochasticSpectral(3),
]  # fmt: skip


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.filterwarnings("ignore")
def test_models_come_back_as_they_were(tmp_path, model):
    model = clone(model).fit(X)
    save(model, tmp_path / "a.model")
    again = load(tmp_path / "a.model")
    assert type(again) is type(model)
    assert str(again.get_params()) == str(model.get_params())
    np.testing.assert_array_equal(again.labels_, model.labels_)
    names = {name for name in vars(model) if name.endswith("_")}
    assert names <= set(vars(again))
    if hasattr(model, "predict"):
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    if hasattr(model, "history_"):
        assert len(again.history_) == len(model.history_)
    assert (joblib_copy(model, tmp_path).labels_ == model.labels_).all()


def joblib_copy(model, folder):
    joblib.dump(model, folder / "a.joblib")
    return joblib.load(folder / "a.joblib")


def test_other_metrics_and_frames(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = ANCMM(3, n_neighbors=8).fit(frame)
    save(model, tmp_path / "a.model")
    again = load(tmp_path / "a.model")
    assert list(again.feature_names_in_) == list("abcd")
    np.testing.assert_array_equal(again.predict(frame), model.labels_)
    K = rbf_kernel(X)
    affine = ANCMM(3, metric="affinity").fit(csr_array(K))
    save(affine, tmp_path / "b.model")
    np.testing.assert_array_equal(
        load(tmp_path / "b.model").predict(K), affine.predict(K)
    )


def test_the_scaler_comes_back(tmp_path):
    K = rbf_kernel(X)
    scaler = DoublyStochasticScaler().fit(K)
    save(scaler, tmp_path / "a.model")
    again = load(tmp_path / "a.model")
    np.testing.assert_array_equal(again.transform(K), scaler.transform(K))


def test_more_can_be_kept(tmp_path):
    extra = {"names": ["a"], "mean": np.arange(3.0), "t": (1, None), "n": np.inf}
    save(ANCMM(2), tmp_path / "a.model", extra=extra)
    model, found = load_with_extra(tmp_path / "a.model")
    assert not hasattr(model, "labels_")
    np.testing.assert_array_equal(found.pop("mean"), np.arange(3.0))
    assert found == {"names": ["a"], "t": (1, None), "n": np.inf}


def test_what_cannot_be_saved_is_said(tmp_path):
    with pytest.raises(InputError, match=r"metric.*function"):
        save(ANCMM(2, metric=lambda a, b: 0.0), tmp_path / "a.model")
    with pytest.raises(InputError, match="RandomState"):
        save(ANCMM(2, random_state=np.random.RandomState(0)), tmp_path / "a.model")
    with pytest.raises(InputError, match="KMeans"):
        save(KMeans(2), tmp_path / "a.model")
    assert not (tmp_path / "a.model").exists()
    save(ANCMM(2), tmp_path / "a.model")
    with pytest.raises(OutputError, match="--force"):
        save(ANCMM(2), tmp_path / "a.model")


@pytest.fixture
def archive(tmp_path):
    save(ANCMM(3, n_neighbors=8).fit(X), tmp_path / "a.model")
    return tmp_path / "a.model"


def changed(path, change):
    """Write the archive again with its description changed."""
    with zipfile.ZipFile(path) as old:
        held = {name: old.read(name) for name in old.namelist()}
    about = json.loads(held[ABOUT])
    change(about, held)
    held[ABOUT] = json.dumps(about)
    with zipfile.ZipFile(path, "w") as new:
        for name, data in held.items():
            new.writestr(name, data)


def attributes(about):
    return next(part for key, part in about["value"]["dict"] if key == "attributes")


def set_attribute(name, value):
    def change(about, held):
        pairs = attributes(about)["dict"]
        for pair in pairs:
            if pair[0] == name:
                pair[1] = value
                return
        pairs.append([name, value])

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda about, held: about.update(format=99), "Update bistochastic"),
        (lambda about, held: about.update(estimator="os.system"), "has not"),
        (lambda about, held: about.update(estimator="NumberEstimate"), "has not"),
        (lambda about, held: about.pop("value"), "damaged"),
        (lambda about, held: held.pop("a0.npy"), "damaged"),
        (lambda about, held: held.update({"a0.npy": b"x"}), "NPZ"),
        (set_attribute("fit", 1), "damaged"),
        (set_attribute("__class__", "x"), "damaged"),
        (set_attribute("n_neighbors", -3), "damaged"),
        (set_attribute("labels_", [0, 1]), "damaged"),
        (set_attribute("labels_", {"eval": "1"}), "damaged"),
    ],
)
def test_broken_models_are_refused(archive, change, words):
    changed(archive, change)
    with pytest.raises(FileError, match=words) as caught:
        load(archive)
    assert archive.name in str(caught.value)


def test_cut_off_models_are_refused(archive):
    data = archive.read_bytes()
    for size in (0, 10, len(data) // 2, len(data) - 1):
        archive.write_bytes(data[:size])
        with pytest.raises(FileError):
            load(archive)
    with pytest.raises(FileError, match="no such file"):
        load(archive.parent / "none")


def test_a_model_says_which_version_wrote_it(archive):
    with zipfile.ZipFile(archive) as held:
        about = json.loads(held.read(ABOUT))
        assert all(name == ABOUT or name.endswith(".npy") for name in held.namelist())
    assert about["bistochastic"] == bistochastic.__version__
    assert about["format"] == 1


SMALL = X[::3]
K = rbf_kernel(SMALL)
FITTED = {
    "ANCMM": (ANCMM(3), SMALL),
    "of affinities": (ANCMM(3, metric="affinity"), K),
    "of sparse points": (ANCMM.paper(3, 5), csr_array(SMALL)),
    "of truth values": (ANCMM(3, n_neighbors=5, metric="jaccard"), SMALL > 3),
    "CLR": (CLR(3), SMALL),
    "ERCAN": (ERCAN(3), SMALL),
    "PCAN": (PCAN(3), SMALL),
    "DSDC": (DSDC(3), SMALL),
    "spectral": (DoublyStochasticSpectral(3), SMALL),
    "scaler": (DoublyStochasticScaler(), K),
    "projecting scaler": (DoublyStochasticScaler(normalization="frobenius"), K),
}


@pytest.fixture(params=FITTED)
def kept(request, tmp_path):
    """Return the data of a model that was saved, and the parts of its file."""
    model, data = FITTED[request.param]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        save(clone(model).fit(data), tmp_path / "a.model")
    return data, *tampering.opened(tmp_path / "a.model")


def used(model, data):
    """Call what a loaded model is for, and look at what comes out."""
    if hasattr(model, "predict"):
        P = model.predict_proba(data)
        assert P.shape == (len(model.labels_), model.labels_.max() + 1)
        np.testing.assert_allclose(P.sum(axis=1), 1)
        assert (P >= 0).all()
    if hasattr(model, "memberships"):
        shares = model.memberships(data)
        np.testing.assert_allclose(shares.sum(axis=1), 1)
    if hasattr(model, "transform"):
        assert len(model.transform(data)) == len(data)
    repr(model)


@pytest.mark.filterwarnings("ignore")
def test_a_changed_model_is_refused_or_works(tmp_path, kept, thorough):
    """Whatever is changed in the file, no error of a library comes out."""
    data, about, held = kept
    file, refused = tmp_path / "a.model", 0
    for what, attributes in tampering.tampered(
        held["attributes"], random.Random(1), 0.08 if thorough else 0.015
    ):
        tampering.written(file, about, held | {"attributes": attributes})
        try:
            used(load(file), data)
        except FileError:
            refused += 1
        except InputError:
            continue  # as: this is not the data of `fit`
        except Exception as error:
            raise AssertionError(f"{what}: {error!r}") from error
    assert refused > (5 if thorough else 0)


@pytest.mark.filterwarnings("ignore")
def test_what_predict_needs_has_to_be_there(tmp_path, kept):
    _, about, held = kept
    file, kind = tmp_path / "a.model", about["estimator"]
    for name in ("n_features_in_", *fitted.NEEDED[kind]):
        attributes = {k: v for k, v in held["attributes"].items() if k != name}
        tampering.written(file, about, held | {"attributes": attributes})
        with pytest.raises(FileError, match=f"a fitted {kind} has {name}, and it is"):
            load(file)


def test_every_fitted_attribute_has_a_check(kept):
    _, about, held = kept
    known = bistochastic.io.models._classes()[about["estimator"]]().get_params()
    assert set(held["attributes"]) <= set(known) | set(fitted.KINDS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("labels_", np.zeros(24, dtype=np.int64)),
        ("labels_", np.arange(25) - 1),
        ("n_clusters_", 4),
        ("n_features_in_", 5),
        ("_n_others", "many"),
        ("_n_others", 26),
        ("n_neighbors_", 10**30),
        ("alpha_", np.full(25, -1.0)),
        ("alpha_", np.full(25, np.nan)),
        ("affinity_matrix_", csr_array((24, 24))),
        ("affinity_matrix_", np.eye(25)),
        ("history_", []),
        ("history_", [{"penalty": "much"}]),
        ("refine_", "magic"),
        ("stability_", np.inf),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(tmp_path, name, value):
    save(ANCMM(3, n_neighbors=5).fit(SMALL), tmp_path / "a.model")
    about, held = tampering.opened(tmp_path / "a.model")
    held["attributes"][name] = value
    tampering.written(tmp_path / "a.model", about, held)
    with pytest.raises(FileError, match=r"is damaged: .*(fitted ANCMM|not fit)"):
        load(tmp_path / "a.model")


def test_a_scaler_with_rows_that_were_dropped_comes_back(tmp_path):
    """Its potential is -inf there, which is no damage."""
    A = K.copy()
    A[3] = A[:, 3] = 0
    scaler = DoublyStochasticScaler(normalization="frobenius", unsupported="prune")
    with pytest.warns(UserWarning, match="Left zero"):
        scaler.fit(csr_array(A))
    save(scaler, tmp_path / "a.model")
    again = load(tmp_path / "a.model")
    np.testing.assert_array_equal(again.potential_, scaler.potential_)
    assert again.potential_[3] == -np.inf
