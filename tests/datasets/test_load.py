"""The sets of the paper: found, checked, or missed with a sentence."""

import os

import numpy as np
import pytest
from sklearn.datasets import load_wine

from bistochastic.core.errors import FileError, InputError
from bistochastic.datasets import load
from bistochastic.datasets.load import PAPER, catalogue, digest


@pytest.fixture
def nowhere(monkeypatch):
    monkeypatch.delenv("BISTOCHASTIC_DATA", raising=False)


def test_wine_comes_with_scikit_learn(nowhere):
    wine = load("wine")
    np.testing.assert_array_equal(wine.data, load_wine().data)
    assert (wine.title, wine.kind, wine.printed) == ("Wine", "table", [178, 13, 3])


def test_the_toy_of_table_1():
    toy = load("moons")
    assert toy.data.shape == (200, 2)
    assert not (toy.data == load("moons", seed=2).data).all()


@pytest.mark.parametrize("name", [n for n in catalogue() if n != "wine"])
def test_a_set_that_is_missing_says_where_to_get_it(nowhere, tmp_path, name):
    with pytest.raises(FileError) as caught:
        load(name, folder=tmp_path)
    said = str(caught.value)
    assert catalogue()[name]["source"] in said
    assert catalogue()[name]["terms"] in said
    assert ("download=True" in said) == ("openml" in catalogue()[name])


def test_faces_under_agreements_are_never_fetched(nowhere, monkeypatch):
    def fetched(*args, **options):
        raise AssertionError("fetched")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetched)
    for name in ("arsmall", "feret", "feret_dup"):
        with pytest.raises(FileError, match="not to be passed on"):
            load(name, download=True)


def test_what_is_fetched_is_checked(nowhere, monkeypatch):
    from sklearn.utils import Bunch

    def fetched(name, **options):
        assert name == "ecoli"
        return Bunch(data=np.zeros((336, 7)), target=np.arange(336) % 8)

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetched)
    with pytest.raises(FileError, match="another set"):
        load("ecoli", download=True)


def test_no_network_is_said(nowhere, monkeypatch):
    def fetched(name, **options):
        raise OSError("no route")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetched)
    with pytest.raises(FileError, match="could not be fetched: no route"):
        load("ecoli", download=True)


def test_another_set_under_the_name_is_refused(tmp_path):
    X, y = load_wine(return_X_y=True)
    np.savez(tmp_path / "wine.npz", X=X + 1, y=y)
    with pytest.raises(FileError, match="another set"):
        load("wine", folder=tmp_path)
    np.savez(tmp_path / "wine.npz", X=X[::-1], y=y[::-1])
    assert load("wine", folder=tmp_path).data.shape == (178, 13)
    assert digest(X) == digest(X[::-1])


def test_names_are_known():
    assert len(PAPER) == 10
    assert set(PAPER) <= set(catalogue())
    with pytest.raises(InputError, match="There is no set 'iris'"):
        load("iris")


@pytest.mark.parametrize("name", [n for n in catalogue() if n != "wine"])
def test_sets_that_are_there(name):
    folder = os.environ.get("BISTOCHASTIC_DATA")
    if not folder:
        pytest.skip("BISTOCHASTIC_DATA names no folder")
    held = load(name)
    assert held.data.shape == tuple(catalogue()[name]["shape"])
    assert held.target.max() + 1 == catalogue()[name]["classes"]
