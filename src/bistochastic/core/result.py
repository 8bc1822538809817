"""What the results of all solvers have in common."""

from typing import Any

from bistochastic.core.errors import listed, several
from bistochastic.core.run import Status


class Result:
    """A result that knows how its run ended and which rows it left out."""

    status: Status
    residual: float
    dropped: Any

    @property
    def converged(self) -> bool:
        """Whether every row sum is within the tolerance."""
        return self.status is Status.CONVERGED

    def _told(self, effort: str, shift: float = 0.0) -> str:
        """Say in sentences how it went."""
        said = f"{self.status}; row sums off by at most {self.residual:.1e}{effort}."
        if self.dropped.size:
            rows = several(self.dropped.size, "row")
            said += f" {rows} left zero: {listed(self.dropped)}".rstrip(".") + "."
        if shift:
            said += f" {shift:.3g} was added to the diagonal."
        return said[0].upper() + said[1:]

    def _kind(self, matrix: Any) -> str:
        """Name the kind and the shape of a matrix, for a representation."""
        kind = f"{type(matrix).__module__}.{type(matrix).__name__}"
        return f"{kind} of shape {tuple(matrix.shape)}"
