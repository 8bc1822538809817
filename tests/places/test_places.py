"""Places: which one data have, and a toy one that is added in one file."""

import inspect

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from strict_place import StrictPlace, install, is_strict

from bistochastic import ANCMM, CAN, CLR, ERCAN, InputError
from bistochastic.core.protocols import Place
from bistochastic.places import PLACES, place_of
from bistochastic.places.host.host import Host
from conftest import need

X = make_blobs(120, 4, centers=3, cluster_std=1.2, random_state=0)[0]


@pytest.fixture
def strict():
    """Add the toy place for the length of a test."""
    import array_api_strict

    install()
    yield array_api_strict
    PLACES.pop()


@pytest.mark.parametrize("place", [Host(), StrictPlace()], ids=["host", "strict"])
def test_every_place_speaks_every_verb(place):
    check_verbs(place)


def test_devices_and_workers_speak_every_verb(request):
    need("torch")
    from bistochastic.places.torch_device.device import TorchDevice

    check_verbs(TorchDevice.named("cpu"))
    need("distributed")
    request.getfixturevalue("client")
    from bistochastic.places.dask_workers.workers import DaskWorkers

    check_verbs(DaskWorkers.active())


def check_verbs(place):
    verbs = inspect.getmembers(Place, inspect.isfunction)
    for name, verb in verbs:
        if name.startswith("_"):
            continue
        made = inspect.signature(getattr(place, name))
        wanted = list(inspect.signature(verb).parameters)[1:]
        assert len(made.parameters) == len(wanted), name
    assert isinstance(place.lazy, bool)


@pytest.mark.parametrize(
    "model",
    [
        ANCMM(3),
        ANCMM(3, refine="local", n_neighbors=8),
        ANCMM.paper(3, 10),
        ANCMM(3, graph_update="exact", refine=None, n_neighbors=8),
        CAN(3),
        CAN(3, candidates="global"),
        CLR(3),
        CLR(3, norm="l1", candidates="global"),
        ERCAN(3, eta=0.1),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_toy_place_gives_the_labels_of_the_host(strict, model):
    here = model.fit(X)
    labels, S = here.labels_, here.affinity_matrix_
    there = model.fit(strict.asarray(X))
    assert is_strict(there.labels_)
    np.testing.assert_array_equal(np.asarray(there.labels_), labels)
    np.testing.assert_allclose(there.affinity_matrix_.toarray(), S.toarray(), atol=1e-7)
    assert not any(isinstance(held, Host) for held in vars(there).values())


def test_without_a_place_of_their_own_arrays_are_brought_to_the_host():
    import array_api_strict

    assert isinstance(place_of(array_api_strict.asarray(X)), Host)
    assert not isinstance(place_of(X), StrictPlace)


def test_singles_need_a_device():
    with pytest.raises(InputError, match="goes with a device"):
        place_of(X, single=True)
