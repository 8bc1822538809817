"""Checks of the parameters that users pass to functions."""

import math
from numbers import Integral, Real
from typing import Any

import numpy as np

from bistochastic.core.arrays import is_sparse, on_cpu
from bistochastic.core.errors import InputError, InputTypeError, several, told

ASSIGNMENT = (
    "For a cheapest plan, the limit of large omega, see "
    "scipy.optimize.linear_sum_assignment."
)


def checked_omega(omega: float) -> Any:
    """Return the weight of the cost as a float, if it is positive and finite."""
    try:
        value = float(omega) if isinstance(omega, Real) else math.nan
    except OverflowError:
        value = math.inf
    if not 0 < value < math.inf:
        said = f"omega={told(omega)}: omega must be a positive, finite number."
        raise InputError(f"{said} {ASSIGNMENT}" if value == math.inf else said)
    return value


LARGEST = 2**63 - 1  # that arrays can count to
MILLION = 1_000_000  # starts, or jobs: far more than anyone can wait for, or has
PAIRS = ("precomputed", "affinity")  # X is n x n
WITH_PARAMETERS = {"mahalanobis", "seuclidean", "nan_euclidean", "wminkowski"}
NO_DISTANCES = {"russellrao", "yule"}  # not 0 from a point to itself


class Limit:
    """A check of one parameter: some words, or numbers of a kind.

    Parameters
    ----------
    *words : str, bool or None
        Values that are taken as they are.
    """

    kind = ""

    def __init__(self, *words: Any) -> None:
        self.words = words

    def __call__(self, name: str, value: Any) -> None:
        """Refuse a value that is none of the words and not of the kind."""
        if any(type(value) is type(word) and value == word for word in self.words):
            return
        if not self.fits(value):
            allowed = [*map(repr, self.words), *([self.kind] if self.kind else [])]
            said = ", ".join([*allowed[:-2], " or ".join(allowed[-2:])])
            raise InputError(f"{name}={told(value)}: {name} must be {said}.")

    def fits(self, value: Any) -> Any:
        """Tell whether a value is of the kind."""
        return False


class Choice(Limit):
    """One of the words."""


def whole(value: Any) -> Any:
    """Tell whether a value is a whole number."""
    return isinstance(value, Integral) and not isinstance(value, bool)


class Count(Limit):
    """A whole number from `least` to `most`, or one of the words."""

    def __init__(self, least: Any, *words: Any, most: Any = LARGEST) -> None:
        super().__init__(*words)
        self.least, self.most = least, most
        self.kind = f"a whole number >= {least}"

    def __call__(self, name: str, value: Any) -> None:
        """Refuse a value that is none of the words and no such number."""
        if whole(value):
            check_most(name, value, self.most)
        super().__call__(name, value)

    def fits(self, value: Any) -> Any:
        """Tell whether it is such a number."""
        return whole(value) and value >= self.least


def check_most(name: str, value: Any, most: Any) -> None:
    """Refuse a whole number that is too large for anything."""
    if value > most:
        raise InputError(f"{name}={told(value)}: {name} must be at most {most:,}.")


class Positive(Limit):
    """A positive number, or one of the words."""

    kind = "a positive, finite number"

    def fits(self, value: Any) -> Any:
        """Tell whether it is such a number, as a double."""
        if not isinstance(value, Real) or isinstance(value, bool):
            return False
        try:
            return 0 < float(value) < math.inf
        except OverflowError:
            return False


class Fraction(Limit):
    """A number between 0 and 1."""

    kind = "a number strictly between 0 and 1"

    def fits(self, value: Any) -> Any:
        """Tell whether it is such a number."""
        return isinstance(value, Real) and 0 < float(value) < 1


def check_metric(name: str, metric: Any, pairs: Any = PAIRS) -> None:
    """Refuse a metric that is not known; of PAIRS, those in `pairs` are."""
    from sklearn.neighbors import VALID_METRICS

    known = {*VALID_METRICS["brute"]} - {*PAIRS} - WITH_PARAMETERS - NO_DISTANCES
    known |= {*pairs}
    if not (callable(metric) or (isinstance(metric, str) and metric in known)):
        raise InputError(
            f"{name}={told(metric)}: {name} must be a function of two rows or one of "
            f"{', '.join(sorted(known))}."
        )


def check_distance(name: str, metric: Any) -> None:
    """Refuse a metric that is not known, or no distance."""
    if isinstance(metric, str) and metric == "affinity":
        raise InputError(
            f'{name}="affinity": this method learns from distances; CLR and ANCMM '
            "take graphs."
        )
    check_metric(name, metric, pairs=("precomputed",))


def unmasked(X: Any) -> Any:
    """Return X, if no mask hides a part of it."""
    if isinstance(X, np.ma.MaskedArray):
        raise InputTypeError(
            "X is masked, and what the mask hides would be used. Impute it, or pass "
            "X.filled(...)."
        )
    return X


def canonical(X: Any) -> Any:
    """Return X; if it is sparse, with sorted indices and each entry once.

    Sums of squares and searches take stored entries for all there are. What the caller
    has is not changed.

    Parameters
    ----------
    X : array or CSR matrix
        Data.

    Returns
    -------
    array or CSR matrix
        The same numbers, with 32-bit indices where these do.
    """
    if not is_sparse(X):
        return X
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if X.indices.dtype == np.int64 and max(*X.shape, X.nnz) < 2**31:
        parts = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)
        X = type(X)(parts, shape=X.shape)
    return X


def check_jobs(name: str, value: Any) -> None:
    """Refuse what is not a number of jobs as scikit-learn understands it."""
    if whole(value):
        check_most(name, value, MILLION)
    if not (value is None or (whole(value) and value != 0)):
        raise InputError(
            f"{name}={told(value)}: {name} must be None or a whole number other than "
            "0; -1 means all processors."
        )


def check_device(name: str, value: Any) -> None:
    """Refuse what does not name a device; whether it is there is seen later."""
    if not (value is None or isinstance(value, str) or hasattr(value, "type")):
        raise InputError(
            f"{name}={told(value)}: {name} must be None or a device of torch, such as "
            "'cuda' or 'cuda:1'."
        )


def check_seed(name: str, value: Any) -> None:
    """Refuse what does not start a random generator."""
    from sklearn.utils import check_random_state

    try:
        check_random_state(value)
    except ValueError as error:
        raise InputError(f"{name}: {error}.") from None


def check_limits(tol: float | None, max_iter: int | None) -> None:
    """Refuse a tolerance or a number of iterates that makes no sense."""
    if tol is not None and not (isinstance(tol, Real) and 0 < tol < 1):
        raise InputError(f"tol={told(tol)}: tol must lie strictly between 0 and 1.")
    if whole(max_iter):
        check_most("max_iter", max_iter, LARGEST)
    if max_iter is not None and not (isinstance(max_iter, Integral) and max_iter >= 1):
        raise InputError(
            f"max_iter={told(max_iter)}: max_iter must be a whole number >= 1."
        )


def checked_marginals(values: Any, n: int) -> Any:
    """Return the wanted row sums, one number if they are equal, and whether."""
    m = np.ones(1) if values is None else positive(values, "marginals", n)
    equal = bool(np.all(m == m[0]))
    return (float(m[0]) if equal else m), equal


def positive(values: Any, name: str, n: int, rows: Any = slice(None)) -> Any:
    """Return the entries `rows` of a vector of n numbers, if these are positive."""
    try:
        values = on_cpu(values)
    except (TypeError, ValueError):
        values = np.empty(())
    if values.shape != (n,) or values.dtype.kind not in "fiub":
        raise InputError(
            f"{name} must be a vector of {n} positive numbers, one for each row of S."
        )
    values = values.astype(np.float64)
    part = values[rows]
    bad = ~((part > 0) & (part < np.inf))
    if bad.any():
        i = np.arange(n)[rows][bad][0]
        raise InputError(
            f"{name} must be positive and finite, but {name}[{i}] is {values[i]:.6g} "
            f"({several(int(bad.sum()), 'such entry', 'such entries')})."
        )
    return part
