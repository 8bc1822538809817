"""The command `scale`: a matrix made doubly stochastic, or the reason why not."""

import io
import shutil
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from bistochastic import (
    MarcusResult,
    Status,
    SupportError,
    SupportReport,
    marcus_mapping,
)
from bistochastic.cli.console import SHORT, UsageError, Voice, remarks
from bistochastic.cli.inputs import at_hand
from bistochastic.cli.outputs import GRAPHS, TABLES, check_outputs
from bistochastic.cli.request import Reading, Scaling, Writing
from bistochastic.core.arrays import is_sparse
from bistochastic.core.errors import FileError, InputError, listed, several
from bistochastic.core.parameters import check_limits
from bistochastic.io import read_matrix, write_graph, write_labels
from bistochastic.io.hdf import write_weights
from bistochastic.io.paths import COOLS, checked_file, parts
from bistochastic.io.reading import kind_of
from bistochastic.io.writing import as_json, beside

NUMBERS = "A matrix has numbers only."
DIAGONALS = 2  # diagonals that cooler leaves out of a map of contacts
TOLERANCE = 1e-10  # the tolerance that a COOL file names by default
ARRAYS = ("key", "format", "max_memory")  # options for files that are not text
TAKEN = ("chrom", "start", "end", ".")  # columns of a COOL file that are not weights
KINDS = {
    "total": "the scaling exists, and is the only one",
    "partial": "some entries would have to become zero",
    "none": "no doubly stochastic matrix has its zeros",
}


@dataclass(frozen=True, eq=False)
class Scaled:
    """A matrix and its scaling.

    Attributes
    ----------
    S : array or sparse matrix
        The matrix, without what was left out of it.
    names : list of str or None
        What its rows are called.
    done : MarcusResult
        Its scaling.
    warned : list of str
        What was warned of.
    seconds : float
        How long it took.
    """

    S: Any
    names: list[str] | None
    done: MarcusResult
    warned: list[str]
    seconds: float

    @property
    def weights(self) -> Any:
        """The weight of each row; not a number for rows that were left out."""
        u = np.asarray(self.done.scaling, dtype=np.float64)
        return np.where(u > 0, u, np.nan)


def scale(voice: Voice, reading: Reading, scaling: Scaling, writing: Writing) -> None:
    """Read a matrix, scale it, write, and say what came out.

    Parameters
    ----------
    voice : Voice
        Speaks.
    reading : Reading
        The file.
    scaling : Scaling
        How it is scaled.
    writing : Writing
        Files to write.
    """
    with at_hand(voice, reading, ".mtx") as path:
        kind = kind_of(checked_file(path), reading.format)
        _check(voice, path, kind == "cool", scaling, writing)
        scaling = _settled(scaling, kind == "cool")
        made = _scaled(voice, path, reading, kind, scaling)
        file = voice.known_as.get(str(path), str(path))
        facts = _facts(file, made, scaling, writing)
        for text in made.warned:
            voice.warn(text)
        _write(voice, path, made, facts, scaling, writing)
        if writing.json:
            voice.put(as_json(facts))
        else:
            _show(voice, facts, made.done)
    if not facts["converged"]:
        sys.exit(SHORT)


def _check(
    voice: Voice, path: Path, cool: bool, scaling: Scaling, writing: Writing
) -> None:
    """Refuse what does not fit before any work is done."""
    column, out = writing.column, writing.out
    if not column or "/" in column or column in TAKEN:
        raise UsageError(f"--column {column!r}: that is no name for weights.")
    if out and out.lower().rpartition("::")[0].endswith(COOLS):
        raise UsageError(f"--out {out}: name the file alone.")
    copied = out is not None and _a_map(out)
    if copied and not cool:
        raise UsageError(f"--out {out}: only a COOL file can get weights.")
    check_outputs(
        voice,
        [path],
        writing.files(),
        writing.force,
        endings={"out": GRAPHS + COOLS * cool, "weights": TABLES},
        streams=("weights",),
        again=("out",) if copied else (),  # the map with weights is the map
    )
    check_limits(scaling.tol, scaling.max_iter)


def _a_map(out: str) -> bool:
    """Tell whether a file of this name is a map of contacts."""
    return out.lower().endswith(COOLS)


def _settled(scaling: Scaling, cool: bool) -> Scaling:
    """Make the choices that were left to the kind of file."""
    diagonals = scaling.ignore_diags
    if diagonals is None:
        diagonals = DIAGONALS if cool else 0
    cure = scaling.unsupported or ("prune" if cool else "raise")
    return replace(scaling, unsupported=cure, ignore_diags=diagonals)


def _scaled(
    voice: Voice, path: Path, reading: Reading, kind: str, scaling: Scaling
) -> Scaled:
    """Read a matrix and scale it."""
    options = {
        name: value
        for name, value in reading.options().items()
        if (name != "key" if kind == "csv" else name in ARRAYS)
    }
    with voice.stage(f"Reading {path}"):
        S, names = read_matrix(path, **options, advice=NUMBERS)
    S, left = _without(S, scaling.ignore_diags, scaling.min_nnz)
    voice.note(_said(path, S, scaling, left))
    began = time.perf_counter()
    with voice.stage(f"Scaling {several(S.shape[0], 'row')}"), remarks() as warned:
        try:
            done = marcus_mapping(
                S,
                method=scaling.method,
                tol=scaling.tol,
                max_iter=scaling.max_iter,
                unsupported=str(scaling.unsupported),
            )
        except SupportError as error:
            raise InputError(_unsupported(path, error.report)) from None
    return Scaled(S, names, done, warned, time.perf_counter() - began)


def _facts(
    file: str, made: Scaled, scaling: Scaling, writing: Writing
) -> dict[str, Any]:
    """Return the summary, as it is printed."""
    done = made.done
    u = np.asarray(done.scaling, dtype=np.float64)
    used = u > 0
    pruned = scaling.unsupported == "prune"
    return {
        "file": file,
        "rows": made.S.shape[0],
        "entries": _entries(made.S),
        "support": done.support.kind,
        "zero_rows": len(done.support.zero_rows),
        "status": done.status.value,
        "converged": done.status is Status.CONVERGED,
        "residual": done.residual,
        "iterations": done.n_iter,
        "products": done.n_products,
        "dropped_rows": int(done.dropped.size),
        "unsupported_entries": int(done.support.unsupported[0].size) if pruned else 0,
        "weighted_residual": _weighted(made.S, u, used),
        "shift": done.shift,
        "scaling_least": float(u[used].min()) if used.any() else None,
        "scaling_most": float(u[used].max()) if used.any() else None,
        "ignored_diagonals": scaling.ignore_diags,
        "warnings": made.warned,
        "seconds": made.seconds,
        "outputs": writing.wanted(),
    }


def _write(
    voice: Voice,
    path: Path,
    made: Scaled,
    facts: dict[str, Any],
    scaling: Scaling,
    writing: Writing,
) -> None:
    """Write the files that are wanted."""
    if writing.out and _a_map(writing.out):
        _write_cool(voice, path, writing.out, made, facts, scaling, writing)
    elif writing.out:
        with voice.stage("Writing the matrix"):
            write_graph(writing.out, made.done.matrix, force=writing.force)
        voice.wrote(writing.out, "doubly stochastic matrix")
    if writing.weights:
        _write_weights(voice, writing.weights, made, writing.force)


def _entries(S: Any) -> int:
    """Return how many entries of a matrix are not zero."""
    return int(np.count_nonzero(S) if isinstance(S, np.ndarray) else S.nnz)


def _unsupported(path: Path, report: SupportReport) -> str:
    """Say why there is no scaling, with rows counted from one."""
    said = f"{path} has no doubly stochastic scaling: {KINDS[report.kind]}"
    zero = np.asarray(report.zero_rows)
    if zero.size:
        verb = "is" if zero.size == 1 else "are"
        said += f"; {several(zero.size, 'row')} {verb} zero ({listed(zero + 1)})"
    pairs = int(report.unsupported[0].size)
    if pairs:
        places = zip(*(axis + 1 for axis in report.unsupported), strict=True)
        which = (f"({i}, {j})" for i, j in places)
        entries = several(pairs, "entry", "entries")
        said += f"; {entries} lie on no diagonal of such a matrix ({listed(which, 3)})"
    return (
        f"{said}. --unsupported prune leaves those rows and entries out, --unsupported "
        "regularize adds to the diagonal."
    )


def _weighted(S: Any, u: Any, used: Any) -> float:
    """Return how far the row sums are from one if entries are only weighted."""
    sums = u * (S @ u)
    return float(np.abs(sums[used] - 1).max(initial=0.0))


def _without(S: Any, diagonals: int | None, least: int) -> tuple[Any, Any]:
    """Return a matrix without its middle diagonals and its emptiest rows."""
    if not diagonals and not least:
        return S, np.empty(0, dtype=int)
    entries = csr_array(S).tocoo()
    i, j = entries.coords
    kept = (np.abs(i - j) >= diagonals) & (entries.data != 0)
    filled = np.bincount(i[kept], minlength=S.shape[0])
    poor = filled < least
    kept &= ~(poor[i] | poor[j])
    made = csr_array((entries.data[kept], (i[kept], j[kept])), shape=S.shape)
    return (made if is_sparse(S) else made.toarray()), np.flatnonzero(
        poor & (filled > 0)
    )


def _said(path: Path, S: Any, scaling: Scaling, left: Any) -> str:
    """Say what a matrix has, and what was left out of it."""
    n, diagonals = S.shape[0], scaling.ignore_diags
    said = f"{path}: {n:,} x {n:,}, {several(_entries(S), 'entry', 'entries')}"
    if diagonals:
        what = "the diagonal" if diagonals == 1 else f"the {diagonals} middle diagonals"
        said += f" without {what} and beside (--ignore-diags)"
    if left.size:
        rows = several(left.size, "row")
        said += f", {rows} with fewer than {scaling.min_nnz} left out"
    return said + "."


def _write_cool(
    voice: Voice,
    path: Path,
    out: str,
    made: Scaled,
    facts: dict[str, Any],
    scaling: Scaling,
    writing: Writing,
) -> None:
    """Write a copy of a map with the weights of its bins."""
    column = writing.column
    source, group = parts(path)
    kept = {
        "tol": scaling.tol or TOLERANCE,
        "min_nnz": scaling.min_nnz,
        "ignore_diags": facts["ignored_diagonals"],
        "cis_only": False,
        "divisive_weights": False,
        "scale": 1.0,
        "converged": facts["converged"],
        "var": facts["residual"] ** 2,
        "generated_by": "bistochastic",
    }
    with voice.stage("Writing the map"), beside(out, writing.force) as place:
        shutil.copyfile(source, place)
        try:
            write_weights(place, group, column, made.weights, kept)
        except (OSError, ValueError, KeyError) as error:
            raise FileError(f"{out}: weights cannot be written: {error}") from None
    voice.wrote(out, f"map with the column {column!r} of weights")


def _write_weights(voice: Voice, out: str, made: Scaled, force: bool) -> None:
    """Write the weight of each row."""
    weights = [None if w != w else float(w) for w in made.weights]
    n, names = len(weights), made.names
    ids = np.arange(1, n + 1) if names is None else np.array(names, dtype=object)
    text = io.StringIO()
    place = text if out == "-" else out
    write_labels(place, weights, ids=ids, value_name="weight", force=force)
    if out == "-":
        voice.put(text.getvalue())
    else:
        voice.wrote(out, f"weights of {several(n, 'row')}")


def _show(voice: Voice, facts: dict[str, Any], done: MarcusResult) -> None:
    """Show how a scaling went to a person."""
    voice.tell(f"\nSupport: {facts['support']}; {KINDS[facts['support']]}.")
    voice.tell(
        f"Status: {facts['status']} ({facts['residual']:.1e}), "
        f"{several(facts['products'], 'product')}, {facts['seconds']:.2f} s."
    )
    if facts["dropped_rows"]:
        voice.tell(
            f"Left zero: {several(facts['dropped_rows'], 'row')} "
            f"({listed(done.dropped + 1)}), {facts['zero_rows']:,} of them without an "
            "entry; their weight is not a number."
        )
    if facts["unsupported_entries"] and facts["support"] != "total":
        voice.tell(
            f"{several(facts['unsupported_entries'], 'entry', 'entries')} lie in no "
            "doubly stochastic matrix and were left out. Weights alone cannot do that: "
            f"with them row sums are off by up to {facts['weighted_residual']:.1e}."
        )
    if facts["shift"]:
        voice.tell(f"Added to the diagonal: {facts['shift']:.3g}.")
    if facts["scaling_least"] is not None:
        voice.tell(
            f"Scaling u from {facts['scaling_least']:.3g} to "
            f"{facts['scaling_most']:.3g}; M = u_i s_ij u_j has row sums "
            + ("of one." if facts["converged"]
               else f"that are off by up to {facts['residual']:.1e}.")
        )  # fmt: skip
