"""Promises of support, marcus_mapping, entropic_plan, the projection and the scaler."""

import numpy as np
from scipy.sparse import issparse

import bistochastic
from hostile import matrices
from hostile.forms import formed
from hostile.oracles import dense, held, kind_of_support, on_diagonal, row_error

ROUNDING = 1e-12  # of row sums of doubles, measured twice
SINGLE = 3e-6  # of row sums that were rounded to single precision
UNDERFLOW = {8: -700.0, 4: -85.0}  # logarithms of what a number can still hold


def support(case, folder):
    """`support` agrees with matchings of every entry."""
    S, _ = matrices.drawn(case, most=40)
    given, truth = formed(case, S, folder)
    done = watched(case, "support", bistochastic.support, given)
    if done.value is None:
        return
    if not np.isfinite(truth).all():
        case.check("refuses what is no number", False, "support took it")
        return
    A, report = truth > 0, done.value
    kind, sure = kind_of_support(A, case.rng)
    case.check(
        "support is right",
        report.kind == kind or not sure,
        f"{report.kind}, but it is {kind}",
    )
    zero = np.flatnonzero(~A.any(axis=1))
    looked = report.kind != "total"
    case.check(
        "support is right",
        not looked or np.array_equal(report.zero_rows, zero),
        "zero rows",
    )
    if report.kind == "partial":
        lost = list(zip(*report.unsupported, strict=True))[:40]
        case.check(
            "support is right",
            not any(on_diagonal(A, i, j) for i, j in lost),
            "an entry that it calls unsupported lies on a positive diagonal",
        )
    if report.crowded.size:
        columns = np.flatnonzero(A[report.crowded].any(axis=0))
        case.check(
            "support is right",
            np.isin(columns, report.contested).all()
            and report.crowded.size + zero.size > report.contested.size,
            "crowded rows have room",
        )


def marcus(case, folder):
    """The Marcus mapping."""
    S, tame = matrices.drawn(case)
    given, truth, bad = _perhaps_poisoned(case, S, folder)
    options = _options(case, ("auto", "auto", "newton", "damped", "alternating"))
    options["unsupported"] = case.pick("raise", "prune", "regularize")
    n = len(truth)
    wanted = np.ones(n)
    if case.chance(0.15):
        wanted = 10.0 ** case.rng.uniform(-2, 2, n)
        options["marginals"] = wanted
    if case.chance(0.15):
        far = 10.0 ** case.rng.uniform(0, case.pick(1, 3, 100))
        options["initial"] = np.exp(case.rng.standard_normal(n)) * far
    done = watched(case, "marcus_mapping", bistochastic.marcus_mapping, given, options)
    if _refused(case, done, bad, "marcus_mapping"):
        _support_was_to_blame(case, done, truth, options)
        return
    result = done.value
    _doubly_stochastic(case, done, result.matrix, truth, wanted, options, given)
    if "marginals" not in options:
        _support_was_there(case, truth, options, result)
    _edges_kept(case, result, truth)
    equal = "marginals" not in options
    if tame and equal and result.converged:
        _permuted(case, truth, result.matrix, bistochastic.marcus_mapping, options)


def plan(case, folder):
    """Entropic transport."""
    S, tame = matrices.drawn(case)
    given, truth, bad = _perhaps_poisoned(case, S, folder)
    options = _options(case, ())
    options["omega"] = float(case.pick(1.0, 1.0, 10.0 ** case.rng.uniform(-4, 4)))
    options["unsupported"] = case.pick("raise", "prune", "regularize")
    done = watched(case, "entropic_plan", bistochastic.entropic_plan, given, options)
    if _refused(case, done, bad, "entropic_plan"):
        return
    result, one = done.value, np.ones(len(truth))
    _doubly_stochastic(case, done, result.plan, truth, one, options, given)
    gone = result.support.unsupported
    case.check(
        "pattern kept",
        options["unsupported"] == "regularize" or not dense(result.plan)[gone].any(),
        "an entry that no plan can hold is positive",
    )
    if tame and result.converged and options["omega"] <= 10:
        _permuted(case, truth, result.plan, bistochastic.entropic_plan, options)
        P, log_S = dense(result.plan), np.log(np.where(truth > 0, truth, 1.0))
        cost = -float((P * log_S).sum())
        case.check(
            "honest numbers",
            result.shift or abs(cost - result.cost) < 1e-4 * (1 + abs(log_S).sum()),
            f"cost {result.cost:.6g}, but it is {cost:.6g}",
        )


def projection(case, folder):
    """The nearest doubly stochastic matrix."""
    S, tame = matrices.drawn(case)
    if case.chance(0.4):
        S, tame = matrices.symmetric(case.rng.standard_normal(S.shape)), True
        S *= 10.0 ** case.rng.uniform(-3, case.pick(1, 5, 90))
    given, truth, bad = _perhaps_poisoned(case, S, folder, negative=True)
    options = _options(case, ("newton", "newton", "newton", "alternating"))
    options["unsupported"] = case.pick("raise", "prune")
    what = "project_doubly_stochastic"
    function = bistochastic.project_doubly_stochastic
    done = watched(case, what, function, given, options)
    if _refused(case, done, bad, what):
        return
    result = done.value
    F, size = dense(result.matrix), float(np.abs(truth).max(initial=1.0))
    pattern = _stored(given) if issparse(given) else np.ones(truth.shape, dtype=bool)
    one = np.ones(len(truth))
    _doubly_stochastic(
        case, done, result.matrix, pattern, one, options, given, 1e-14 * size
    )
    a, newton = np.asarray(result.potential), options["method"] == "newton"
    if newton and result.converged and size < 1e6 and F.dtype == np.float64:
        with np.errstate(all="ignore"):
            best = np.maximum(truth + a[:, None] + a, 0) * pattern
        best[result.dropped] = best[:, result.dropped] = 0
        case.check(
            "nearest",
            result.dropped.size or np.allclose(F, best, atol=1e-9 * (1 + size)),
            lambda: f"off the conditions of optimality by {abs(F - best).max():.1e}",
        )
    if tame and newton and result.converged and size < 100 and not issparse(given):
        _permuted(case, truth, F, function, options)


def scaler(case, folder):
    """The transformer: rows sum to one, also of the same rows again."""
    S, _ = matrices.drawn(case)
    given, truth, bad = _perhaps_poisoned(case, S, folder)
    options = {
        "normalization": case.pick(
            "marcus", "zass_shashua_2005", "frobenius", "zass_shashua_2006"
        ),
        "unsupported": case.pick("prune", "raise", "regularize"),
        "tol": case.pick(None, 1e-6, 1e-8),
        "max_iter": case.pick(None, None, 5, 300),
    }
    case.note(f"{options}")
    model = bistochastic.DoublyStochasticScaler(**options)
    done = watched(case, "fit_transform", model.fit_transform, given)
    signed = options["normalization"] in ("frobenius", "zass_shashua_2006")
    if bad == "negative" and signed:
        bad = None
    if _refused(case, done, bad, "DoublyStochasticScaler"):
        return
    P = dense(done.value)
    single = P.dtype == np.float32
    rows = np.setdiff1d(np.arange(len(P)), model.dropped_)
    tol = options["tol"] or (1e-5 if single else 1e-10)
    size = float(np.abs(truth).max(initial=1.0))
    slack = SINGLE if single else ROUNDING + 1e-14 * size
    error = row_error(P[rows])
    case.check(
        "doubly stochastic or a warning",
        error <= tol * 1.01 + slack or done.short,
        f"row sums off by {error:.1e} without a warning, tol={tol:g}",
    )
    case.check("symmetric to the bit", np.array_equal(P, P.T), "not symmetric")
    if options["normalization"] != "zass_shashua_2006" and not done.short:
        _transformed(case, model, given, truth, rows)


def _transformed(case, model, given, truth, rows):
    """Scale the matrix of the fit once more, as if its rows were new."""
    again = watched(case, "transform", model.transform, given)
    alive = (truth[:, rows] > 0).any(axis=1).all()  # else refused, as documented
    text = f"transform refused the matrix of its own fit: {again.error}"
    taken = again.value is not None
    case.check("takes its own data", taken or not alive or case.strict, text)
    if not taken:
        return
    T = dense(again.value)
    error = row_error(T[rows])
    size = float(np.abs(truth).max(initial=1.0))
    slack = 1e-5 if T.dtype == np.float32 else 1e-9 + 1e-14 * size
    case.check("rows sum to one", error < slack, f"transform: off by {error:.1e}")


def watched(case, what, function, given, options=None):
    """Call twice; the input stays as it was, and what comes out is the same."""
    options = options or {}
    before = held(given)
    told = {k: v for k, v in options.items() if not isinstance(v, np.ndarray)}
    done = case.call(f"{what} {told}", function, given, **options)
    case.check("input untouched", held(given) == before, what)
    if done.value is not None and case.chance(0.3):
        again = case.call(f"{what} again", function, given, **options)
        case.check(
            "same twice",
            again.value is not None
            and fingerprint(done.value) == fingerprint(again.value),
            what,
        )
    return done


def fingerprint(value):
    """Return the bytes of a result."""
    for name in ("matrix", "plan"):
        if hasattr(value, name):
            return held(getattr(value, name)), value.status, value.n_iter
    return repr(value) if hasattr(value, "crowded") else held(value)


def _options(case, methods):
    options = {
        "tol": case.pick(None, None, 1e-6, 1e-8, 1e-12, 1e-14),
        "max_iter": case.pick(None, None, None, 1, 7, 100),
    }
    return options | ({"method": case.pick(*methods)} if methods else {})


def _perhaps_poisoned(case, S, folder, negative=False):
    """Return the matrix in a form, its numbers, and why it has to be refused."""
    bad = None
    if case.chance(0.06):
        S, bad = matrices.poisoned(case, S)
    given, truth = formed(case, S, folder)
    if bad and np.isfinite(truth).all() and (truth >= 0).all():
        bad = bad if np.any(truth != truth.T) else None  # the form has lost it
    if bad == "negative" and negative:
        bad = None
    if not np.isfinite(truth).all():
        bad = bad or "inf"
    return given, truth, bad


def _refused(case, done, bad, what):
    if bad:
        case.check("refuses what is no number", done.value is None, f"{what}: {bad}")
        return True
    return done.value is None


def _doubly_stochastic(case, done, M, truth, wanted, options, given, rounding=0.0):
    """Check a result: row sums, symmetry, pattern, kind, and what it says of itself."""
    result, P = done.value, dense(M)
    single = P.dtype == np.float32
    tol = options["tol"] or (1e-5 if single else 1e-10)
    rows = np.setdiff1d(np.arange(len(P)), result.dropped)
    error = row_error(P[rows], wanted[rows], relative=True)
    slack = (SINGLE if single else ROUNDING) + rounding
    case.check(
        "doubly stochastic or a warning",
        error <= tol * 1.01 + slack if result.converged else done.short,
        f"{result.status.name}: row sums off by {error:.1e}, tol={tol:g}",
    )
    case.check(
        "honest numbers",
        not np.isfinite(result.residual) or error <= 1.01 * result.residual + slack,
        f"residual {result.residual:.2e}, but it is {error:.2e} ({result.status.name})",
    )
    case.check(
        "finite",
        np.isfinite(P).all() and (P >= 0).all(),
        f"{result.status.name}: entries that are no numbers, or negative",
    )
    case.check("symmetric to the bit", np.array_equal(P, P.T, equal_nan=True))
    shifted = getattr(result, "shift", 0.0) > 0
    outside = (P != 0) & ~(truth > 0) & ~(shifted & np.eye(len(P), dtype=bool))
    case.check("pattern kept", not outside.any(), "entries where the input has none")
    kind = np.ndarray if isinstance(given, list) else type(given)
    kind = np.ndarray if issubclass(kind, np.ndarray) else kind
    case.check("kind kept", isinstance(M, kind), f"{type(given)} became {type(M)}")
    if isinstance(M, np.ndarray) and isinstance(given, np.ndarray):
        case.check("input untouched", not np.shares_memory(M, given), "shares memory")


def _stored(K):
    """Return where a sparse matrix stores something."""
    C = K.tocoo()
    stored = np.zeros(K.shape, dtype=bool)
    stored[C.row, C.col] = True
    return stored


def _support_was_to_blame(case, done, truth, options):
    from bistochastic import SupportError

    if isinstance(done.error, SupportError) and "marginals" not in options:
        kind, sure = kind_of_support(truth, case.rng)
        case.check(
            "support is right", kind != "total" or not sure, "refused, yet total"
        )


def _support_was_there(case, truth, options, result):
    if options["unsupported"] == "raise" and len(truth) <= 40:
        kind, _ = kind_of_support(truth, case.rng)
        case.check("support is right", kind == "total", f"scaled, yet {kind}")
    case.check(
        "support is right",
        options["unsupported"] != "raise" or not result.dropped.size,
        "rows were dropped that nobody allowed to drop",
    )


def _edges_kept(case, result, truth):
    """Check that M = D S D entry by entry, wherever a number can hold it."""
    P, u = dense(result.matrix), np.asarray(result.scaling, dtype=np.longdouble)
    whole = result.support.kind == "total" and not result.shift
    if not (whole and np.isfinite(P).all() and (u > 0).all() and np.isfinite(u).all()):
        return
    i, j = np.nonzero(truth)
    logs = np.log(truth[i, j].astype(np.longdouble)) + np.log(u)[i] + np.log(u)[j]
    seen = logs > UNDERFLOW[P.dtype.itemsize]
    lost = seen & (P[i, j] == 0)
    case.check("edges kept", not lost.any(), lambda: f"{_first(lost, i, j, logs)} is 0")
    seen &= ~lost
    with np.errstate(all="ignore"):
        off = np.abs(np.log(P[i, j][seen].astype(np.longdouble)) - logs[seen])
    limit = 1e-8 if P.dtype == np.float64 else 1e-3
    worst = float(off.max(initial=0.0))
    case.check(
        "edges kept", worst < limit, f"DSD differs by a factor of 1 + {worst:.1e}"
    )


def _first(lost, i, j, logs):
    k = int(np.flatnonzero(lost)[0])
    return f"entry ({i[k]}, {j[k]}), about 1e{logs[k] / np.log(10):.0f},"


def _permuted(case, truth, M, function, options):
    """Check that rows in another order give the result in that order."""
    order = case.rng.permutation(len(truth))
    done = case.call("permuted", function, truth[np.ix_(order, order)], **options)
    if done.value is None:
        case.check("same after permutation", False, f"refused: {done.error}")
        return
    other = done.value.plan if hasattr(done.value, "plan") else done.value.matrix
    single = dense(M).dtype == np.float32
    limit = 1e-3 if single else 1e-4 if (options["tol"] or 0) > 1e-7 else 1e-5
    off = np.abs(dense(other) - dense(M)[np.ix_(order, order)]).max()
    case.check(
        "same after permutation",
        off < limit or not done.value.converged,
        f"entries differ by {off:.1e}",
    )
