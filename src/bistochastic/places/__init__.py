"""Places where data lie and work is done: the host, a device of torch, Dask workers.

An estimator asks `place_of` once, and then the place (`core.protocols.Place`).
"""

from collections.abc import Callable
from typing import Any

from array_api_compat import is_torch_array

from bistochastic.core.errors import InputError, InputTypeError
from bistochastic.core.protocols import Place
from bistochastic.places.host.host import Host

PLACES: list[tuple[Callable[[Any], bool], Callable[[Any], Place]]] = []


def add_place(knows: Callable[[Any], bool], make: Callable[[Any], Place]) -> None:
    """Let data of some kind be clustered where they lie.

    Parameters
    ----------
    knows : callable
        Tells whether data are of this kind.
    make : callable
        Makes the place of such data; see CONTRIBUTING.md.
    """
    PLACES.append((knows, make))


def place_of(X: Any, device: Any = None, *, single: bool = False) -> Place:
    """Return the place of a fit: that of the device, or where the data lie.

    Parameters
    ----------
    X : object
        The data.
    device : str or torch.device, optional
        What the caller asks for.
    single : bool, default=False
        Whether graphs are of singles.

    Returns
    -------
    Place
        The workers of the active client for what lies in Dask or a chunked store, the
        device that is named or has the tensor X, else the host.
    """
    for knows, make in PLACES:
        if knows(X):
            return make(X)
    if is_distributed(X):
        from bistochastic.places.dask_workers.workers import DaskWorkers

        return DaskWorkers.active(device, single=single)
    if device is None and is_torch_array(X) and X.device.type != "cpu":
        device = X.device
    if device is not None:
        from bistochastic.places.torch_device.device import TorchDevice

        return TorchDevice.named(device, single=single, X=X)
    if single:
        raise InputError(
            'precision="single" goes with a device; on the CPU graphs are of doubles.'
        )
    return Host.of(X)


def host_for(X: Any, method: str) -> Host:
    """Return the host, for a method that runs nowhere else."""
    if is_torch_array(X) and X.device.type != "cpu":
        raise InputTypeError(
            f"X lies on {X.device}, and {method} runs on the CPU; pass X.cpu(). ANCMM "
            "runs on devices."
        )
    return Host()


def on_host(X: Any) -> Any:
    """Return data that may be tensors as the host knows them."""
    if not is_torch_array(X):
        return X
    from bistochastic.places.torch_device.inputs import fetched

    return fetched(X)


def is_collection(X: Any) -> bool:
    """Tell whether X is a Dask collection."""
    if not hasattr(X, "__dask_graph__"):
        return False
    return X.__dask_graph__() is not None  # None: it could be one, and is not


def is_distributed(X: Any) -> bool:
    """Tell whether X is a Dask collection, or an array in a chunked store."""
    if is_collection(X):
        return True
    return type(X).__module__.split(".")[0] == "zarr" and hasattr(X, "chunks")
