"""The functions that users call."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from bistochastic.core.arrays import on_cpu
from bistochastic.core.errors import InputError, check_choice
from bistochastic.core.parameters import (
    check_limits,
    checked_marginals,
    checked_omega,
    positive,
)
from bistochastic.core.quiet import quietly
from bistochastic.core.run import Status
from bistochastic.places.matrices import Wanted, hold
from bistochastic.scaling import feasibility as existence
from bistochastic.scaling import frobenius, transport
from bistochastic.scaling.feasibility import reachable, scalable
from bistochastic.scaling.frobenius import ProjectionResult
from bistochastic.scaling.marcus import LIMITS, MarcusResult, marcus
from bistochastic.scaling.support import SupportReport
from bistochastic.scaling.transport import TransportResult
from bistochastic.solvable import Solvable, logarithms, warn

FARTHEST = {32: 1e15, 64: 1e120}  # where a start may lie; any start will do
CURES = ("raise", "prune", "regularize")


@quietly
def support(S: Any) -> SupportReport:
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


@quietly
def marcus_mapping(
    S: Any,
    *,
    method: str = "auto",
    tol: float | None = None,
    max_iter: int | None = None,
    unsupported: str = "raise",
    marginals: Any = None,
    initial: Any = None,
) -> MarcusResult:
    """Scale S to the doubly stochastic matrix M(S) = DSD, Eq. (1).

    Finds the positive diagonal D for which every row and column of DSD sums to one
    (Theorem 2, Corollary 1). M(S) is unique, keeps the zeros of S, and is the
    doubly stochastic matrix nearest to S in relative entropy.

    Parameters
    ----------
    S : array-like, sparse matrix or array, data frame, torch tensor or Dask array
        Symmetric non-negative matrix of shape (n, n): NumPy arrays, every SciPy
        sparse format, dense and CSR tensors, Dask arrays of dense or sparse blocks of
        rows, which stay on their workers. Asymmetry by rounding (1e-10 of the
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
        Positive vector to start from, such as the `scaling` of a similar matrix. A
        hint: where it leads nowhere, the default start takes over.

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
    check_choice("method", method, LIMITS)
    check_choice("unsupported", unsupported, CURES)
    check_limits(tol, max_iter)
    held = hold(S)
    m, equal = checked_marginals(marginals, held.graph.n)
    ready = scalable(held.graph, unsupported, equal_marginals=equal)
    part = Solvable(held, ready)
    u, core = None, part.core
    if initial is not None:
        u = positive(initial, "initial", part.n, part.rows) * held.unit
        u = core.vector(np.clip(u, 1 / FARTHEST[held.bits], FARTHEST[held.bits]))
    tol = part.tolerance(tol)
    sums = m if equal else core.vector(m[part.rows])
    done = marcus(core, u, sums, method=method, tol=tol, max_iter=max_iter)
    u = part.whole(done.value)
    matrix = held.restore(ready.graph.scaled(u).native())
    status, residual = part.rounded(done, matrix, tol, m)
    result = MarcusResult(
        matrix=matrix,
        scaling=held.vector(u / held.unit),
        status=status,
        n_iter=done.n_iter,
        n_products=sum(g.n_products for g in {held.graph, ready.graph, core}),
        residual=residual,
        residuals=done.residuals,
        support=ready.report,
        dropped=part.dropped,
        shift=part.shift,
    )
    if not result.converged:
        better = method not in ("auto", "newton")
        warn(result, equal, ' Or use method="auto".' if better else "")
    return result


@quietly
def entropic_plan(
    S: Any,
    *,
    omega: float = 1.0,
    tol: float | None = None,
    max_iter: int | None = None,
    unsupported: str = "raise",
    marginals: Any = None,
) -> TransportResult:
    r"""Solve the entropic transport problem with cost -log S, Eq. (24).

    Among the doubly stochastic matrices finds the plan P with the smallest
    :math:`\langle P, -\log S \rangle + \frac{1}{\omega} \sum_{ij} p_{ij} \log p_{ij}`.
    It is symmetric, and at omega = 1 it is the Marcus mapping M(S), Eqs. (26)-(28).
    Large omega makes it sharp: in the limit the most spread out of the cheapest plans,
    an assignment if only one is cheapest. Omega near 0 spreads it over the pattern.

    Parameters
    ----------
    S : array-like, sparse matrix or array, data frame, or torch tensor
        Symmetric non-negative matrix of shape (n, n), taken as in `marcus_mapping`.
        A zero is an infinite cost. Logarithms are taken of positive entries only, and
        powers of S are never formed.
    omega : float, default=1.0
        Weight of the cost against the entropy; 1 / omega is the regularization of
        other libraries.
    tol : float, optional
        Largest relative error of a row sum; 1e-10, or 1e-5 in single precision.
    max_iter : int, optional
        Most iterates at `omega`; 200 by default. More allow more work in all, too.
    unsupported : {"raise", "prune", "regularize"}, default="raise"
        What to do where S has no support, so that no plan exists; as in
        `marcus_mapping`. With support that is not total the problem has a solution
        all the same, and unless it is to be regularized it is given: the limit in
        which the entries in ``result.support.unsupported`` are zero.
    marginals : array-like of shape (n,), optional
        Positive row sums wanted in place of ones.

    Returns
    -------
    TransportResult
        The plan in the kind of S, the potential, cost and entropy, and how it went.

    Raises
    ------
    SupportError
        If S has no support and `unsupported` is "raise".
    InputError
        If S or a parameter cannot be used; the message says what to do.

    Warns
    -----
    ConvergenceWarning
        If the row sums did not reach `tol`.

    See Also
    --------
    marcus_mapping : The case omega = 1, faster.

    Notes
    -----
    Eq. (26) supposes that multipliers exist, and the paper does not say when: exactly
    if S has total support (Theorem 1). Otherwise the minimum of Eq. (24) is the limit
    of such plans, the plan for what pruning leaves of S.

    For two different sets with similarities R, pass the symmetric
    ``[[0, R], [R.T, 0]]``; the plan stands in the upper right block. Sets of different
    sizes need `marginals` whose sums over both sets are equal.

    From costs C and a regularization ``reg``: ``S = exp(-C / scale)`` and
    ``omega = scale / reg``, with a scale of about ``C.max() / 500``, so that no
    similarity vanishes that should not.

    The exponents are exact to about 1e-16 times omega times the largest ``|log S|``,
    which bounds the accuracy of the row sums.

    Examples
    --------
    >>> import numpy as np
    >>> from bistochastic import entropic_plan
    >>> S = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.8], [0.0, 0.8, 1.0]])
    >>> for omega in (0.1, 1, 10):
    ...     print(omega, entropic_plan(S, omega=omega).plan[0].round(3))
    0.1 [0.631 0.369 0.   ]
    1 [0.741 0.259 0.   ]
    10 [0.999 0.001 0.   ]
    """
    check_choice("unsupported", unsupported, CURES)
    check_limits(tol, max_iter)
    omega = checked_omega(omega)
    held = hold(S, Wanted(double=True))
    m, equal = checked_marginals(marginals, held.graph.n)
    ready = scalable(held.graph, unsupported, equal_marginals=equal, limit=True)
    part = Solvable(held, ready)
    scores = logarithms(part.core, omega)
    tol = part.tolerance(tol)
    sums = m if equal else part.core.vector(m[part.rows])
    done = transport.plan(scores, omega, sums, tol=tol, max_iter=max_iter)
    log_S = scores if ready.kept is None else ready.graph.log()
    a = part.whole(done.value)
    P = log_S.exponential(omega, a)
    r = P.apply(P.ones())
    reward, pull = log_S.dot(P), 2 * float(array_namespace(a).sum(a * r))
    phi = np.full(part.n, np.inf)
    phi[part.rows] = math.log(held.unit) - (on_cpu(done.value) + 0.5) / omega
    matrix = held.restore(P.native())
    status, residual = part.rounded(done, matrix, tol, m)
    result = TransportResult(
        plan=matrix,
        potential=held.vector(ready.graph.vector(phi)),
        cost=-reward - 2 * math.log(held.unit) * float(array_namespace(r).sum(r)),
        entropy=-omega * reward - pull,
        omega=omega,
        status=status,
        n_iter=done.n_iter,
        n_products=scores.n_products,
        residual=residual,
        residuals=done.residuals,
        support=ready.report,
        dropped=part.dropped,
        shift=part.shift,
    )
    if not result.converged:
        warn(result, equal, " Or lower omega.")
    return result


@quietly
def project_doubly_stochastic(
    K: Any,
    *,
    method: str = "newton",
    tol: float | None = None,
    max_iter: int | None = None,
    unsupported: str = "raise",
) -> ProjectionResult:
    r"""Find the symmetric doubly stochastic matrix nearest to K.

    Solves :math:`\min_F \|F - K\|_F` over :math:`F \ge 0`, :math:`F = F^\top`,
    :math:`F 1 = 1`, the normalization of Zass and Shashua (2006). With
    ``K = -M / (2 * alpha)`` it is the coupled problem of Eq. (13), solved exactly.

    Parameters
    ----------
    K : array-like, sparse matrix or array, data frame, or torch tensor
        Symmetric real matrix of shape (n, n). Of a sparse matrix only the stored
        entries, zeros among them, may become positive; to allow all, pass it dense.
        The DIA format cannot store zeros.
    method : {"newton", "alternating"}, default="newton"
        ``"newton"`` solves the dual problem by semismooth Newton steps.
        ``"alternating"`` is the published iteration of Zass and Shashua, which ends
        in a doubly stochastic matrix that is not the nearest; `gap` says how far off.
    tol : float, optional
        Largest error of a row sum; 1e-10, or 1e-5 in single precision.
    max_iter : int, optional
        Most iterates, for "newton" on the scale of K; 200 for that, 10,000 for
        "alternating", down to 1,000 of a large K. More than 200 allow "newton" more
        work in all.
    unsupported : {"raise", "prune"}, default="raise"
        What to do where no doubly stochastic matrix has the pattern of a sparse K.
        ``"prune"``, with "newton", leaves the rows in ``result.dropped`` zero.

    Returns
    -------
    ProjectionResult
        The matrix in the kind of K, its potential, the duality gap, and how it went.

    Raises
    ------
    SupportError
        If K is sparse, no doubly stochastic matrix has its pattern, and it is not
        pruned, or nothing would be left.
    InputError
        If K or a parameter cannot be used; the message says what to do.

    Warns
    -----
    ConvergenceWarning
        If the row sums did not reach `tol`.

    See Also
    --------
    marcus_mapping : The nearest in relative entropy, which keeps every edge.

    Notes
    -----
    Unlike the Marcus mapping it sets small entries to zero, needs no positive entries
    and depends on the scale of K: a small K spreads the result, a large one makes it
    nearly a matching. Row sums are exact to about 1e-16 times the size of the largest
    entry of a row, which may be 9e15; entries far below these do no harm.

    Examples
    --------
    >>> import numpy as np
    >>> from bistochastic import project_doubly_stochastic
    >>> K = np.array([[1.0, 0.6, 0.0], [0.6, 1.0, 0.8], [0.0, 0.8, 1.0]])
    >>> result = project_doubly_stochastic(K)
    >>> result.matrix.round(4)
    array([[0.7867, 0.2133, 0.    ],
           [0.2133, 0.44  , 0.3467],
           [0.    , 0.3467, 0.6533]])
    >>> result.n_iter
    3
    """
    check_choice("method", method, frobenius.MOST)
    check_limits(tol, max_iter)
    check_choice("unsupported", unsupported, CURES[:2])
    held = hold(K, Wanted("K", signed=True, double=True))
    if method == "alternating" and unsupported == "prune":
        raise InputError('unsupported="prune" goes with method="newton" only.')
    advice = existence.PRUNE if method == "newton" else ""
    ready = reachable(held.graph, prune=unsupported == "prune", advice=advice)
    part = Solvable(held, ready)
    core, tol = part.core, part.tolerance(tol)
    limit = {} if max_iter is None or method != "newton" else {"max_iter": max_iter}
    done = frobenius.nearest(core, tol=tol, **limit)
    a, potential = part.whole(done.value), part.whole(done.value, -np.inf)
    F = ready.graph.clipped(1.0, a)
    bounded = done.status is Status.CONVERGED
    if method == "alternating":
        core.n_products = 0
        done = frobenius.published(core, tol=tol, max_iter=max_iter)
        F = done.value.clipped(1.0, 0 * a)  # the zeros left out
    matrix = held.restore(F.native())
    status, residual = part.rounded(done, matrix, tol)
    result = ProjectionResult(
        matrix=matrix,
        potential=held.vector(potential),
        status=status,
        n_iter=done.n_iter,
        n_products=core.n_products,
        residual=residual,
        residuals=done.residuals,
        gap=frobenius.duality_gap(F, ready.graph, a) if bounded else math.nan,
        support=ready.report,
        dropped=part.dropped,
    )
    if not result.converged:
        warn(result)
    return result


# name -> (function, its method)
NORMALIZATIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "marcus": (marcus_mapping, "auto"),
    "zass_shashua_2005": (marcus_mapping, "damped"),
    "frobenius": (project_doubly_stochastic, "newton"),
    "zass_shashua_2006": (project_doubly_stochastic, "alternating"),
}
