"""Errors about input: what broke, where, which condition of the paper, what to do."""

from collections.abc import Collection, Iterable
from itertools import islice
from typing import Any


class InputError(ValueError):
    """The input cannot be used as it is.

    Examples
    --------
    >>> from bistochastic import InputError, marcus_mapping
    >>> try:
    ...     marcus_mapping([[1.0, -1.0], [-1.0, 1.0]])
    ... except InputError as error:
    ...     print(isinstance(error, ValueError))
    True
    """


class InputTypeError(InputError, TypeError):
    """The input is of a kind or an element type that cannot be used."""


class FileError(InputError):
    """A file cannot be read: what is wrong, where in it, what to do."""


class OutputError(FileError):
    """A file cannot be written: what is in the way, what to do."""


class MissingError(InputError, ImportError):
    """A library that is needed for this is not installed."""


class DeviceMemoryError(InputError, MemoryError):
    """The memory of a device is too small for the data."""


class ClusterError(InputError, ConnectionError):
    """A Dask client is closed, or cut off from what is asked for."""


class DegenerateError(InputError):
    """All candidates of every point cost the same; there is nothing to weigh.

    Parameters
    ----------
    message : str
        What to do.
    k : int
        The number of neighbors that is too small.
    """

    def __init__(self, message: str, k: int) -> None:
        super().__init__(message)
        self.k = k

    def __reduce__(self) -> tuple[Any, ...]:
        """Carry the number along, so that worker processes can raise it."""
        return type(self), (self.args[0], self.k)


class NotSymmetricError(InputError):
    """The matrix differs from its transpose by more than rounding.

    Examples
    --------
    >>> from bistochastic import NotSymmetricError, marcus_mapping
    >>> try:
    ...     marcus_mapping([[1.0, 2.0], [3.0, 1.0]])
    ... except NotSymmetricError:
    ...     print("not symmetric")
    not symmetric
    """


class SupportError(InputError):
    """The matrix has no doubly stochastic scaling; `report` says why.

    Parameters
    ----------
    message : str
        The reason, the rows and the cure.
    report : SupportReport
        The diagnosis behind the message.

    Examples
    --------
    >>> from bistochastic import SupportError, marcus_mapping
    >>> try:
    ...     marcus_mapping([[0.0, 0, 1], [0, 0, 1], [1, 1, 0]])  # Eq. (3)
    ... except SupportError as error:
    ...     print(error.report.kind)
    none
    """

    def __init__(self, message: str, report: Any) -> None:
        super().__init__(message)
        self.report = report

    def __reduce__(self) -> tuple[Any, ...]:
        """Carry the report along, so that worker processes can raise it."""
        return type(self), (self.args[0], self.report)


def several(number: int, one: str, many: str | None = None) -> str:
    """Write a number with its noun, as in ``1 row`` and ``2 rows``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def listed(items: Iterable[Any], most: int = 5) -> str:
    """Write the first few items of a list for a message, as in ``4, 9, 12, ...``."""
    words = [str(item) for item in islice(items, most + 1)]
    return ", ".join(words[:most] + ["..."] * (len(words) > most))


def told(value: Any, most: int = 80) -> str:
    """Write a value that was passed for a message, in short."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no numbers of more than 4,300 digits
        return f"(a number of {value.bit_length():,} bits)"
    return text if len(text) <= most else f"{text[:most]}..."


def check_choice(name: str, value: Any, allowed: Collection[str]) -> None:
    """Refuse a value that is not among the allowed words."""
    if not (isinstance(value, str) and value in allowed):
        words = ", ".join(map(repr, allowed))
        raise InputError(f"{name}={told(value)}: {name} must be one of {words}.")
