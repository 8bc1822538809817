"""What a page is about: a fitted model, its data, and how things are called."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from bistochastic.core.arrays import is_sparse, on_cpu
from bistochastic.core.errors import InputError
from bistochastic.report.geometry import checked

LONG = 60  # the most characters of a name that are shown


@dataclass(eq=False)
class Run:
    """A fitted model, its data, and what is known of them.

    Attributes
    ----------
    model : estimator
        A fitted one.
    X : array or sparse matrix of shape (n, d)
        What it was fitted to.
    names : list of str or None
        Of the columns.
    ids : list of str or None
        Of the rows.
    truth : array or None
        Labels to compare with; None where one is missing.
    shift, factor : array of shape (d,) or None
        What brings columns back to their own units: X factor + shift.
    more : dict
        File, seconds, memory, versions, notes, warnings, commands.
    """

    model: Any
    X: Any
    names: Any = None
    ids: Any = None
    truth: Any = None
    shift: Any = None
    factor: Any = None
    more: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check that all fits together."""
        checked(self.model)
        self.given = self.X  # a data frame is one for the model, too
        self.X = _as_numbers(self.X)
        if len(self.X.shape) != 2 or self.X.shape[0] != self.labels.size:
            raise InputError(
                f"X has shape {self.X.shape}, but the model was fitted to "
                f"{self.labels.size:,} rows."
            )
        if hasattr(self.model, "_same"):
            self.model._same(self.given)
        n, d = self.X.shape
        self.truth = _as_labels(self.truth)
        for what, number in (
            ("names", d), ("ids", n), ("truth", n), ("shift", d), ("factor", d),
        ):  # fmt: skip
            held = getattr(self, what)
            if held is None:
                continue
            held = list(held)
            if len(held) != number:
                kind = "rows" if what in ("ids", "truth") else "columns"
                raise InputError(
                    f"{what} has {len(held):,} entries for {number:,} {kind}."
                )
            setattr(self, what, held)
        if self.names is None:
            self.names = getattr(self.model, "feature_names_in_", None)
        if self.names is None:
            self.names = [f"column {at + 1}" for at in range(d)]

    @property
    def labels(self) -> Any:
        """The cluster of each row."""
        return on_cpu(self.model.labels_)

    @property
    def number(self) -> int:
        """How many clusters there are."""
        return int(self.labels.max()) + 1

    def row(self, at: int) -> str:
        """Return how a row is called."""
        return short(self.ids[at]) if self.ids is not None else f"row {at + 1}"


def _as_numbers(X: Any) -> Any:
    """Return points or pairs as an array or CSR matrix of floating-point numbers."""
    if is_sparse(X):
        X = csr_array(X)
        return X if X.dtype.kind == "f" else X.astype(np.float64)
    if hasattr(X, "to_numpy") and hasattr(X, "columns"):
        X = X.to_numpy(dtype=np.float64)
    X = np.asarray(X)
    return X if X.dtype.kind == "f" else X.astype(np.float64)


def _as_labels(truth: Any) -> list[Any] | None:
    """Return labels as a list, None where one is missing."""
    if truth is None:
        return None
    if len(getattr(truth, "shape", (1,))) != 1:
        raise InputError(f"truth has shape {truth.shape}; one label a row is needed.")
    held = truth.tolist() if hasattr(truth, "tolist") else list(truth)
    return [None if _missing(label) else label for label in held]


def _missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except (TypeError, ValueError):  # pandas.NA has no truth value
        return True


def short(text: object, most: int = LONG) -> str:
    """Return a text on one line that is not too long, without odd characters."""
    text = "".join(c if c.isprintable() else " " for c in str(text)).strip()
    return text if len(text) <= most else text[: most - 1] + "…"


def number(value: float | None) -> str:
    """Return a number as people write it."""
    if value is None or value != value:
        return ""
    if value and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.2e}"
    digits = max(0, 3 - int(np.floor(np.log10(abs(value)))) - 1) if value else 0
    return f"{value:,.{digits}f}"
