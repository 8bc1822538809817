"""Entropic transport with cost -log S: Eqs. (24)-(28)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from bistochastic.core.errors import several
from bistochastic.core.protocols import Scores
from bistochastic.core.result import Result
from bistochastic.core.run import Status
from bistochastic.scaling.dual import Link, path
from bistochastic.scaling.support import SupportReport

MOST = 200  # Newton steps for the last omega, unless the caller says otherwise


@dataclass(frozen=True, eq=False, repr=False)
class TransportResult(Result):
    r"""The plan of Eq. (24), and how it was found.

    Attributes
    ----------
    plan : same kind as S
        The symmetric doubly stochastic plan P: symmetric to the bit, zero where S is
        zero.
    potential : array of shape (n,)
        The multipliers phi = xi of Eq. (26), with which
        :math:`p_{ij} = e^{-1/2 - \omega \phi_i} s_{ij}^\omega e^{-1/2 - \omega \phi_j}`
        ; infinite for rows in `dropped`.
    cost : float
        :math:`\langle P, -\log S \rangle`.
    entropy : float
        :math:`-\sum_{ij} p_{ij} \log p_{ij}`.
    omega : float
        The weight of the cost against the entropy.
    status : Status
        How the iteration ended; its value is a sentence.
    n_iter : int
        Number of iterates, those for smaller omega on the way included.
    n_products : int
        Products of a matrix with a vector.
    residual : float
        Largest relative error of the row sums of `plan`, dropped rows aside.
    residuals : tuple of float
        The same for the iterates at `omega`.
    support : SupportReport
        The support that S has. Without total support Eq. (26) does not hold for all
        positive entries of S: those in ``support.unsupported`` are zero in every plan.
    dropped : array of int
        Rows left zero by ``unsupported="prune"``.
    shift : float
        What ``unsupported="regularize"`` added to the diagonal of S.

    Examples
    --------
    >>> from bistochastic import entropic_plan
    >>> result = entropic_plan([[2.0, 1.0], [1.0, 3.0]], omega=2.0)
    >>> result.plan.sum(axis=1).round(6)
    array([1., 1.])
    """

    plan: Any
    potential: Any
    cost: float
    entropy: float
    omega: float
    status: Status
    n_iter: int
    n_products: int
    residual: float
    residuals: tuple[float, ...]
    support: SupportReport
    dropped: np.ndarray
    shift: float

    @property
    def value(self) -> Any:
        """The objective of Eq. (24): cost minus entropy over omega."""
        return self.cost - self.entropy / self.omega

    def __repr__(self) -> Any:
        return (
            f"TransportResult({self._kind(self.plan)}, "
            f"omega={self.omega:g}, cost={self.cost:.6g}, {self.status.name}, "
            f"residual={self.residual:.1e}, n_iter={self.n_iter})"
        )

    def __str__(self) -> Any:
        """Say in sentences how it went."""
        iterates = several(self.n_iter, "iterate")
        return self._told(f" after {iterates}", self.shift)


def _damped(a: Any, r: Any, m: int) -> Any:
    """Return a - log(r / m) / 2, the damped map of Eq. (2) in the log domain."""
    return a - array_namespace(a).log(r / m) / 2


ENTROPIC = Link(
    plan=lambda K, omega, a: K.exponential(omega, a),
    mass=lambda P, r: array_namespace(r).sum(r),
    slopes=lambda P: P,
    damped=_damped,
)


def plan(
    log_S: Scores,
    omega: float,
    m: float = 1.0,
    *,
    tol: float,
    max_iter: int | None = None,
) -> Any:
    r"""Find the potential of the entropic plan, Eqs. (24)-(26).

    By Eq. (26) the plan is :math:`P = D S^{(\omega)} D`, with the entries of S raised
    to the power omega, so at omega = 1 it is the Marcus mapping, Eqs. (27) and (28).
    The powers are never formed: :math:`p_{ij} = \exp(\omega \log s_{ij} + a_i + a_j)`
    with :math:`a = -\tfrac12 - \omega \phi`.

    Parameters
    ----------
    log_S : Scores
        The logarithms of S on its pattern. With row sums of one it must have total
        support.
    omega : float
        Weight of the cost against the entropy.
    m : array of shape (n,) or float, default=1.0
        Wanted row sums.
    tol : float
        Wanted relative error of the row sums.
    max_iter : int, optional
        Most iterates at this omega.

    Returns
    -------
    Run
        The potential a, how it ended, and the residuals.
    """
    return path(log_S, ENTROPIC, omega, m, tol=tol, max_iter=max_iter or MOST)
