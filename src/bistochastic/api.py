"""The functions that users call."""

import warnings
from numbers import Integral, Real

import numpy as np

from bistochastic.backends.dense import on_cpu
from bistochastic.core.errors import InputError, several
from bistochastic.core.run import Status
from bistochastic.input import hold
from bistochastic.scaling import existence
from bistochastic.scaling.existence import scalable
from bistochastic.scaling.marcus import LIMITS, MarcusResult, marcus

TOLERANCE = {32: 1e-5, 64: 1e-10}
FARTHEST = {32: 1e15, 64: 1e120}  # where a start may lie; any start will do
CURES = ("raise", "prune", "regularize")


def support(S):
    """Tell whether S has a doubly stochastic scaling, and if not, why.

    A symmetric non-negative matrix can be scaled to a doubly stochastic one exactly
    if it has total support: every positive entry lies on a positive diagonal
    (Definition 1, Theorem 1, Corollary 1). A positive main diagonal is enough
    (Theorem 2); only where it has zeros is the pattern searched.

    Parameters
    ----------
    S : array-like, sparse matrix or array, data frame, or torch tensor
        Symmetric non-negative matrix of shape (n, n).

    Returns
    -------
    SupportReport
        ``kind`` is "total", "partial" or "none"; ``str()`` of it names the rows.

    See Also
    --------
    marcus_mapping : Compute the scaling.

    Examples
    --------
    The matrix of Eq. (3) has two rows that compete for one column:

    >>> from bistochastic import support
    >>> report = support([[0, 0, 1], [0, 0, 1], [1, 1, 0]])
    >>> report.kind
    'none'
    >>> report.crowded
    array([0, 1])
    """
    return existence.support(hold(S).graph)


def marcus_mapping(
    S,
    *,
    method="auto",
    tol=None,
    max_iter=None,
    unsupported="raise",
    marginals=None,
    initial=None,
):
    """Scale S to the doubly stochastic matrix M(S) = DSD, Eq. (1).

    Finds the positive diagonal D for which every row and column of DSD sums to one
    (Theorem 2, Corollary 1). M(S) is unique, keeps the zeros of S, and is the
    doubly stochastic matrix nearest to S in relative entropy.

    Parameters
    ----------
    S : array-like, sparse matrix or array, data frame, or torch tensor
        Symmetric non-negative matrix of shape (n, n): NumPy arrays, every SciPy
        sparse format, dense and CSR tensors. Asymmetry by rounding (1e-10 of the
        largest entries of the two rows, 1e-5 in single precision) is averaged out.
        Never changed, and never made dense.
    method : {"auto", "newton", "damped", "alternating", "fixed_point"}, default="auto"
        ``"damped"`` is the degree iteration of Eq. (2); ``"newton"`` is Newton's
        method on the potential of the mapping; ``"auto"`` starts with the first and
        goes on with the second where that is faster. ``"alternating"`` is Algorithm
        1 and ``"fixed_point"`` the iteration of Corollary 2, both as printed, the
        one slow on clustered graphs, the other apt to cycle.
    tol : float, optional
        Largest relative error of a row sum; 1e-10, or 1e-5 in single precision.
    max_iter : int, optional
        Most iterates; 1,000 for "auto" and "newton", 10,000 for the others.
    unsupported : {"raise", "prune", "regularize"}, default="raise"
        What to do where S has no total support, so that no D exists. ``"prune"``
        drops the entries in ``result.support.unsupported`` and leaves the rows in
        ``result.dropped`` zero; where S has support, that is the limit that Algorithm
        1 would creep to. ``"regularize"`` adds a tenth of the mean row sum to the
        diagonal.
    marginals : array-like of shape (n,), optional
        Positive row sums wanted in place of ones.
    initial : array-like of shape (n,), optional
        Positive vector to start from, such as the `scaling` of a similar matrix.

    Returns
    -------
    MarcusResult
        The matrix in the kind of S, the scaling, and how it went.

    Raises
    ------
    SupportError
        If S has no total support and `unsupported` is "raise", or if pruning would
        leave nothing; ``error.report`` is the SupportReport.
    InputError
        If S or a parameter cannot be used; the message says what to do.

    Warns
    -----
    ConvergenceWarning
        If the row sums did not reach `tol`; `status` and `residual` say how it ended.

    See Also
    --------
    support : Why a scaling exists or not.

    Notes
    -----
    Connected components of the graph do not influence one another.

    With unequal `marginals` and zeros on the diagonal, whether D exists depends on
    the numbers, not on the pattern alone: only zero rows are then dealt with in
    advance, and marginals out of reach end with a warning.

    Examples
    --------
    >>> from bistochastic import marcus_mapping
    >>> result = marcus_mapping([[1.0, 2.0], [2.0, 16.0]])
    >>> result.matrix.round(4)
    array([[0.6667, 0.3333],
           [0.3333, 0.6667]])
    >>> print(result.status)
    converged: the residual is within the tolerance
    """
    _check_options(method, tol, max_iter, unsupported)
    held = hold(S)
    n = held.graph.n
    m = 1.0 if marginals is None else _positive(marginals, "marginals", n)
    if equal := bool(np.all(m == np.min(m))):
        m = float(np.min(m))
    ready = scalable(held.graph, unsupported, equal_marginals=equal)
    rows = slice(None) if ready.kept is None else ready.kept
    core = ready.graph if ready.kept is None else ready.graph.part(ready.kept)
    u = core.ones()
    if initial is not None:
        u = _positive(initial, "initial", n, rows) * held.unit
        u = core.vector(np.clip(u, 1 / FARTHEST[held.bits], FARTHEST[held.bits]))
    done = marcus(
        core,
        u,
        m if equal else core.vector(m[rows]),
        method=method,
        tol=TOLERANCE[held.bits] if tol is None else float(tol),
        max_iter=max_iter,
    )
    u = done.value
    if ready.kept is not None:
        whole = np.zeros(n)
        whole[rows] = on_cpu(u)
        u = ready.graph.vector(whole)
    result = MarcusResult(
        matrix=held.restore(ready.graph.scaled(u).native()),
        scaling=u / held.unit,
        status=done.status,
        n_iter=done.n_iter,
        n_products=sum(g.n_products for g in {held.graph, ready.graph, core}),
        residual=done.residual,
        residuals=done.residuals,
        support=ready.report,
        dropped=np.delete(np.arange(n), rows),
        shift=ready.shift * held.unit * held.unit,
    )
    if not result.converged:
        _warn(result, method, equal)
    return result


def _check_options(method, tol, max_iter, unsupported):
    for name, value, allowed in (
        ("method", method, LIMITS),
        ("unsupported", unsupported, CURES),
    ):
        if not (isinstance(value, str) and value in allowed):
            words = ", ".join(map(repr, allowed))
            raise InputError(f"{name}={value!r}: {name} must be one of {words}.")
    if tol is not None and not (isinstance(tol, Real) and 0 < tol < 1):
        raise InputError(f"tol={tol!r}: tol must lie strictly between 0 and 1.")
    if max_iter is not None and not (isinstance(max_iter, Integral) and max_iter >= 1):
        raise InputError(
            f"max_iter={max_iter!r}: max_iter must be a whole number >= 1."
        )


def _positive(values, name, n, rows=slice(None)):
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


def _warn(result, method, equal):
    from sklearn.exceptions import ConvergenceWarning

    advice = {
        Status.LIMIT: "Raise max_iter.",
        Status.STALLED: "Raise tol.",
        Status.CYCLED: "Corollary 2 supposes that its iteration converges.",
        Status.OVERFLOW: "The entries of S are too far apart in size.",
    }[result.status]
    if method not in ("auto", "newton"):
        advice += ' Or use method="auto".'
    if not equal:
        advice = "It may be that no matrix with this pattern has these marginals."
    warnings.warn(
        f"The row sums are not within the tolerance. {result} {advice}",
        ConvergenceWarning,
        stacklevel=3,
    )
