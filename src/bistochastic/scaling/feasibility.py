"""What to do where M(S) does not exist: Theorem 1 and Corollary 1 as a choice."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from bistochastic.core.errors import SupportError
from bistochastic.core.protocols import Graph, Scores
from bistochastic.scaling.support import SupportReport, analyze

SHIFT = 0.1  # of the mean row sum, what "regularize" adds to the diagonal
PRUNE = 'Pass unsupported="prune" to leave out what cannot be scaled.'
REGULARIZE = (
    'Pass unsupported="regularize" to add a multiple of the identity, or give every '
    "row a positive diagonal entry (Theorem 2)."
)


@dataclass(frozen=True)
class Scalable:
    """A graph made ready for the mapping.

    Attributes
    ----------
    graph : Graph or Scores
        What the mapping, plan or projection is made of.
    kept : array of int, or None
        The rows that take part; None for all.
    report : SupportReport
        The support that the caller's matrix has.
    shift : float
        What was added to the diagonal.
    """

    graph: Any
    kept: Any
    report: SupportReport
    shift: float = 0.0


def support(S: Graph) -> Any:
    """Diagnose a graph, by Theorem 2 alone where its diagonal is positive.

    Parameters
    ----------
    S : Graph
        Symmetric non-negative matrix.

    Returns
    -------
    SupportReport
        The kind of support and what lacks it.
    """
    diagonal = S.diagonal()
    if bool(array_namespace(diagonal).all(diagonal > 0)):
        return SupportReport("total")
    return analyze(S.pattern(), S.fast)


def reachable(K: Scores, *, prune: bool = False, advice: str | None = PRUNE) -> Any:
    """Diagnose the pattern of scores; with support, some plan lies on it.

    Parameters
    ----------
    K : Scores
        Symmetric scores on a pattern.
    prune : bool, default=False
        Whether to leave out rows that no plan reaches, rather than to raise.
    advice : str, optional
        What an error says in the end where pruning would help.

    Returns
    -------
    Scalable
        The scores and the rows that take part.
    """
    if K.looped():
        return Scalable(K, None, SupportReport("total"))
    report = support(K.exponential(0.0, 0 * K.ones()))
    if report.kind != "none":
        return Scalable(K, None, report)
    kept = np.flatnonzero(report.row_blocks >= 0)
    if not (prune and kept.size):
        said = (
            "No doubly stochastic matrix has the pattern of K. With S for ones on that "
            f"pattern: {report} Store more entries, as zeros if need be; a full "
            "diagonal is enough (Theorem 2)."
        )
        raise SupportError(f"{said} {advice}" if kept.size else said, report)
    return Scalable(K.cut(report.row_blocks, report.column_blocks), kept, report)


def scalable(
    S: Graph, unsupported: str, *, equal_marginals: bool = True, limit: bool = False
) -> Any:
    """Diagnose a graph and raise, prune or regularize where it has no scaling.

    Parameters
    ----------
    S : Graph
        Symmetric non-negative matrix.
    unsupported : {"raise", "prune", "regularize"}
        What to do without total support.
    equal_marginals : bool, default=True
        Whether all row sums are to be equal; if not, only zero rows are known to
        be out of reach in advance.
    limit : bool, default=False
        Whether support is enough: what lacks it is pruned, not an error.

    Returns
    -------
    Scalable
        The graph to scale and what was done to it.
    """
    report = support(S)
    if not (report.kind != "total" if equal_marginals else report.zero_rows.size):
        return Scalable(S, None, report)
    if limit and equal_marginals and report.kind == "partial":
        unsupported = "prune" if unsupported == "raise" else unsupported
    if equal_marginals:
        kept = np.flatnonzero(report.row_blocks >= 0)
    else:
        kept = np.setdiff1d(np.arange(S.n), report.zero_rows)
    if unsupported == "regularize":
        ones = S.ones()
        mean = float(array_namespace(ones).sum(S.apply(ones))) / S.n
        shift = SHIFT * mean if mean > 0 else 1.0
        return Scalable(S.shifted(shift), None, report, shift)
    if kept.size == 0:
        said = f"{report} Nothing would be left after pruning. {REGULARIZE}"
        raise SupportError(said, report)
    if unsupported == "raise":
        raise SupportError(f"{report} {PRUNE} {REGULARIZE}", report)
    if equal_marginals:
        S = S.cut(report.row_blocks, report.column_blocks)
    return Scalable(S, None if kept.size == S.n else kept, report)
