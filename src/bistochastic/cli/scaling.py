"""What the command `scale` does."""

import io
import shutil
import sys
import time

import numpy as np
from scipy.sparse import csr_array, issparse

from bistochastic import Status, SupportError, marcus_mapping
from bistochastic.cli.console import SHORT, UsageError, remarks
from bistochastic.cli.outputs import GRAPHS, TABLES, check_outputs
from bistochastic.core.errors import FileError, InputError, listed, several
from bistochastic.core.parameters import check_limits
from bistochastic.io import read_matrix, write_graph, write_labels
from bistochastic.io.hdf import write_weights
from bistochastic.io.paths import COOLS, checked_file, parts
from bistochastic.io.reading import kind_of
from bistochastic.io.writing import as_json, beside

NUMBERS = "A matrix has numbers only."
DIAGONALS = 2  # that cooler leaves out of a map of contacts
KINDS = {
    "total": "the scaling exists, and is the only one",
    "partial": "some entries would have to become zero",
    "none": "no doubly stochastic matrix has its zeros",
}


def scale(
    voice, path, reading, *, options, ignore_diags, min_nnz, out, weights, column,
    force, json,
):  # fmt: skip
    """Read a matrix, scale it, write, and say what came out.

    Parameters
    ----------
    voice : Voice
        Speaks.
    path : Path
        The file.
    reading : dict
        Options of `read_matrix`.
    options : dict
        Options of `marcus_mapping`.
    ignore_diags, min_nnz : int
        What to leave out of the matrix.
    out, weights : str or None
        Files to write.
    column : str
        Name of the weights in a COOL file.
    force, json : bool
        Whether to replace files, print JSON.
    """
    cool = kind_of(checked_file(path), reading["format"]) == "cool"
    if not column or "/" in column or column in ("chrom", "start", "end", "."):
        raise UsageError(f"--column {column!r}: that is no name for weights.")
    _check_outputs(voice, path, cool, out, weights, force)
    check_limits(options["tol"], options["max_iter"])
    cure = options["unsupported"] or ("prune" if cool else "raise")
    options = options | {"unsupported": cure}
    if ignore_diags is None:
        ignore_diags = DIAGONALS if cool else 0
    with voice.stage(f"Reading {path}"):
        S, names = read_matrix(path, **_of_kind(path, reading), advice=NUMBERS)
    n = S.shape[0]
    S, left = _without(S, ignore_diags, min_nnz)
    voice.note(_said(path, S, ignore_diags, min_nnz, left))
    began = time.perf_counter()
    with voice.stage(f"Scaling {several(n, 'row')}"), remarks() as said:
        try:
            done = marcus_mapping(S, **options)
        except SupportError as error:
            raise InputError(_unsupported(path, error.report)) from None
    seconds = time.perf_counter() - began
    u = np.asarray(done.scaling, dtype=np.float64)
    used = u > 0
    pruned = options["unsupported"] == "prune"
    pairs = int(done.support.unsupported[0].size) if pruned else 0
    facts = {
        "file": voice.known_as.get(str(path), str(path)),
        "rows": n,
        "entries": int(S.nnz if issparse(S) else np.count_nonzero(S)),
        "support": done.support.kind,
        "zero_rows": len(done.support.zero_rows),
        "status": done.status.value,
        "converged": done.status is Status.CONVERGED,
        "residual": done.residual,
        "iterations": done.n_iter,
        "products": done.n_products,
        "dropped_rows": int(done.dropped.size),
        "unsupported_entries": pairs,
        "weighted_residual": _weighted(S, u, used),
        "shift": done.shift,
        "scaling_least": float(u[used].min()) if used.any() else None,
        "scaling_most": float(u[used].max()) if used.any() else None,
        "ignored_diagonals": ignore_diags,
        "warnings": said,
        "seconds": seconds,
        "outputs": {k: v for k, v in {"out": out, "weights": weights}.items() if v},
    }
    for text in said:
        voice.warn(text)
    held = np.where(used, u, np.nan)
    if out and out.lower().endswith(COOLS):
        _write_cool(voice, path, out, column, held, facts, options, min_nnz, force)
    elif out:
        with voice.stage("Writing the matrix"):
            write_graph(out, done.matrix, force=force)
        voice.wrote(out, "doubly stochastic matrix")
    if weights:
        _write_weights(voice, weights, names, held, force)
    if json:
        voice.put(as_json(facts))
    else:
        _show(voice, facts, done)
    if not facts["converged"]:
        sys.exit(SHORT)


def _unsupported(path, report):
    """Say why there is no scaling, with rows counted from one."""
    said = f"{path} has no doubly stochastic scaling: {KINDS[report.kind]}"
    zero = np.asarray(report.zero_rows)
    if zero.size:
        verb = "is" if zero.size == 1 else "are"
        said += f"; {several(zero.size, 'row')} {verb} zero ({listed(zero + 1)})"
    pairs = int(report.unsupported[0].size)
    if pairs:
        which = zip(*(axis + 1 for axis in report.unsupported), strict=True)
        which = (f"({i}, {j})" for i, j in which)
        entries = several(pairs, "entry", "entries")
        said += f"; {entries} lie on no diagonal of such a matrix ({listed(which, 3)})"
    return (
        f"{said}. --unsupported prune leaves those rows and entries out, --unsupported "
        "regularize adds to the diagonal."
    )


def _weighted(S, u, used):
    """Return how far the row sums are from one if entries are only weighted."""
    sums = u * (S @ u)
    return float(np.abs(sums[used] - 1).max(initial=0.0))


def _of_kind(path, reading):
    """Return the options that a kind of file understands."""
    if kind_of(path, reading["format"]) == "csv":
        return {k: v for k, v in reading.items() if k != "key"}
    return {k: reading[k] for k in ("key", "format", "max_memory")}


def _check_outputs(voice, path, cool, out, weights, force):
    """Refuse what cannot be written before any work is done."""
    if out and out.lower().rpartition("::")[0].endswith(COOLS):
        raise UsageError(f"--out {out}: name the file alone.")
    copied = bool(out) and out.lower().endswith(COOLS)
    if copied and not cool:
        raise UsageError(f"--out {out}: only a COOL file can get weights.")
    check_outputs(
        voice,
        [path],
        {"out": out, "weights": weights},
        force,
        endings={"out": GRAPHS + COOLS * cool, "weights": TABLES},
        streams=("weights",),
        again=("out",) if copied else (),  # the map with weights is the map
    )


def _without(S, diagonals, least):
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
    return (made if issparse(S) else made.toarray()), np.flatnonzero(
        poor & (filled > 0)
    )


def _said(path, S, diagonals, least, left):
    n = S.shape[0]
    entries = S.nnz if issparse(S) else np.count_nonzero(S)
    said = f"{path}: {n:,} x {n:,}, {several(int(entries), 'entry', 'entries')}"
    if diagonals:
        what = "the diagonal" if diagonals == 1 else f"the {diagonals} middle diagonals"
        said += f" without {what} and beside (--ignore-diags)"
    if left.size:
        said += f", {several(left.size, 'row')} with fewer than {least} left out"
    return said + "."


def _write_cool(voice, path, out, column, weights, facts, options, min_nnz, force):
    """Write a copy of a map with the weights of its bins."""
    source, group = parts(path)
    kept = {
        "tol": options["tol"] or 1e-10,
        "min_nnz": min_nnz,
        "ignore_diags": facts["ignored_diagonals"],
        "cis_only": False,
        "divisive_weights": False,
        "scale": 1.0,
        "converged": facts["converged"],
        "var": facts["residual"] ** 2,
        "generated_by": "bistochastic",
    }
    with voice.stage("Writing the map"), beside(out, force) as place:
        shutil.copyfile(source, place)
        try:
            write_weights(place, group, column, weights, kept)
        except (OSError, ValueError, KeyError) as error:
            raise FileError(f"{out}: weights cannot be written: {error}") from None
    voice.wrote(out, f"map with the column {column!r} of weights")


def _write_weights(voice, out, names, weights, force):
    """Write the weight of each row."""
    n = len(weights)
    ids = np.arange(1, n + 1) if names is None else np.array(names, dtype=object)
    listed_ = [None if w != w else float(w) for w in weights]
    text = io.StringIO()
    place = text if out == "-" else out
    write_labels(place, listed_, ids=ids, value_name="weight", force=force)
    if out == "-":
        voice.put(text.getvalue())
    else:
        voice.wrote(out, f"weights of {several(n, 'row')}")


def _show(voice, facts, done):
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
