"""What a command is asked for: what to read, to prepare, to fit and to write."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

FILES = ("labels", "graph", "model", "report", "summary", "out", "weights")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A file, and how to read it; None leaves a choice to the reader, or to the model.

    Attributes
    ----------
    file : str
        Its path; ``-`` is standard input.
    use, drop, id, label, encode : object
        Which columns to use, and for what, as in `read_table`.
    key, format, separator, decimal, encoding, header, missing, thousands, skip : object
        How the file is written, as in `read_table`.
    max_memory : int, optional
        Bytes that its contents may take.
    """

    file: str
    use: Sequence[str] | None = None
    drop: Sequence[str] | None = None
    id: str | None = None
    label: str | None = None
    encode: bool | None = None
    key: str | None = None
    format: str | None = None
    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: bool | None = None
    missing: Sequence[str] | None = None
    thousands: str | None = None
    skip: int | None = None
    max_memory: int | None = None

    def options(self) -> dict[str, Any]:
        """Return the options of `read_table` that were given."""
        every = {held.name: getattr(self, held.name) for held in fields(self)[1:]}
        return {name: value for name, value in every.items() if value is not None}

    def only(self, names: Iterable[str]) -> dict[str, Any]:
        """Return some of the options, whether given or not."""
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, kw_only=True)
class Preparing:
    """How the columns of a table become coordinates.

    Attributes
    ----------
    scale : str, optional
        How columns of numbers are scaled; by default as suits the table.
    impute : str, optional
        What to put where values are missing.
    drop_missing : bool
        Whether rows with missing values are left out.
    """

    scale: str | None = None
    impute: str | None = None
    drop_missing: bool = False


@dataclass(frozen=True, kw_only=True)
class Fitting:
    """Parameters of ANCMM, under the names that it has for them.

    Attributes
    ----------
    n_clusters, n_neighbors, min_cluster_size : int or "auto"
        Numbers that may be chosen by the data.
    metric : str
        What is measured between rows.
    random_state : int
        Starts the eigensolver.
    n_jobs : int, optional
        Threads.
    device : str, optional
        Where to run.
    """

    n_clusters: int | str
    n_neighbors: int | str
    min_cluster_size: int | str
    metric: str
    random_state: int
    n_jobs: int | None
    device: str | None


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """How a matrix is made doubly stochastic; None leaves a choice to the kind of file.

    Attributes
    ----------
    method : str
        How the scaling is found.
    tol : float, optional
        Largest error of a row sum.
    max_iter : int, optional
        Most iterates.
    unsupported : str, optional
        What to do where no scaling exists.
    ignore_diags : int, optional
        How many diagonals are left out of the matrix.
    min_nnz : int
        How many entries a row needs to be kept.
    """

    method: str
    tol: float | None
    max_iter: int | None
    unsupported: str | None
    ignore_diags: int | None
    min_nnz: int


@dataclass(frozen=True, kw_only=True)
class Writing:
    """What to write, and how; None for a file that is not wanted.

    Attributes
    ----------
    labels, graph, model, report, summary, out, weights : str, optional
        Files, under the names of their options; ``-`` is standard output for some.
    column : str
        Name of the weights in a COOL file.
    layout : str
        How a page lays rows out.
    force : bool
        Whether a file that is there may be replaced.
    raw_ids : bool
        Whether ids that a spreadsheet would take for formulas stay as they are.
    json : bool
        Whether the summary is printed as JSON.
    """

    labels: str | None = None
    graph: str | None = None
    model: str | None = None
    report: str | None = None
    summary: str | None = None
    out: str | None = None
    weights: str | None = None
    column: str = "weight"
    layout: str = "auto"
    force: bool = False
    raw_ids: bool = False
    json: bool = False

    def files(self) -> dict[str, str | None]:
        """Return the files by their options."""
        return {name: getattr(self, name) for name in FILES}

    def wanted(self) -> dict[str, str]:
        """Return the files that are wanted, by their options."""
        return {name: file for name, file in self.files().items() if file}


@dataclass(frozen=True, kw_only=True)
class Experiments:
    """Which of the paper's experiments to run, and where.

    Attributes
    ----------
    sets, methods, protocols : sequence of str, optional
        Which of them; all by default.
    data : str, optional
        The folder with the sets.
    records, out : str
        Where records are kept, and where tables and figures go.
    jobs : int, optional
        How many processes.
    figures : bool
        Whether to draw the figures.
    """

    sets: Sequence[str] | None
    methods: Sequence[str] | None
    protocols: Sequence[str] | None
    data: str | None
    records: str
    out: str
    jobs: int | None
    figures: bool
