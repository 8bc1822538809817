"""Promises under threads and interrupts."""

import pickle
import signal
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_info

import bistochastic
from hostile import points
from hostile.case import documented, place
from hostile.oracles import held, parts

THREADS = 4
FITTED = ("labels_", "affinity_matrix_", "embedding_")


def threads(case, folder):
    """The same in several threads at once is what it is in one."""
    case.raising = case.strict = False
    X = case.rng.normal(size=(int(case.rng.integers(30, 400)), 4))
    X[::2] += 4
    name = case.pick("ANCMM", "ANCMM", "ANCMM", "CAN", "PCAN", "CLR", "ERCAN", "DSDC",
                     "DoublyStochasticSpectral")  # fmt: skip
    model = getattr(bistochastic, name)(2)
    if name == "ANCMM":
        model.set_params(
            refine=case.pick("auto", None), graph_update=case.pick("marcus", "exact")
        )
    case.note(f"{model!r} on {X.shape} in {THREADS} threads")
    if case.call("fit alone", model.fit, X).error is not None:
        return
    before = _pools()
    fits = _at_once(case, "fit in threads", [lambda: clone(model).fit(X)] * THREADS)
    case.check(
        "threads restored", _pools() == before, lambda: f"{before}, now {_pools()}"
    )
    for fit in filter(None, fits):
        differ = [
            name
            for name in FITTED
            if hasattr(model, name)
            and held(getattr(fit, name)) != held(getattr(model, name))
        ]
        case.check("same in threads", not differ, f"{name}: {differ} differ")
    _methods(case, model, X)


def _methods(case, model, X):
    """The methods of one fitted model, from several threads."""
    ways = {
        "predict": lambda: model.predict(X).tobytes(),
        "predict_proba": lambda: model.predict_proba(X).tobytes(),
        "memberships": lambda: held(model.memberships(X)),
        "approximation": lambda: repr(model.approximation(X)),
        "pickle": lambda: pickle.loads(pickle.dumps(model)).labels_.tobytes(),
    }
    ways = {
        name: way
        for name, way in ways.items()
        if hasattr(model, name) or name == "pickle"
    }
    alone = {name: case.call(name, way).value for name, way in ways.items()}
    ways = {name: way for name, way in ways.items() if alone[name] is not None}
    names = [*ways] * 3
    found = _at_once(case, "methods in threads", [ways[name] for name in names])
    for name, one in zip(names, found, strict=True):
        if one is not None:
            case.check(
                "same in threads", one == alone[name], f"{type(model).__name__}.{name}"
            )


def _at_once(case, what, calls):
    """Call in as many threads at once; return what came, None for errors."""
    case._pulse(what)
    case.note(what)
    with warnings.catch_warnings(), ThreadPoolExecutor(THREADS) as pool:
        warnings.simplefilter("ignore")  # filters are not the threads' own
        waiting = [pool.submit(call) for call in calls]
        errors = [one.exception() for one in waiting]
    for error in errors:
        case.check(
            "no errors in threads",
            error is None or documented(error),
            lambda error=error: f"{what}: {error!r} ({place(error)})",
        )
    return [None if e else one.result() for one, e in zip(waiting, errors, strict=True)]


def _pools():
    """Return the number of threads of every pool of BLAS."""
    pools = (pool for pool in threadpool_info() if pool["user_api"] == "blas")
    return sorted((pool["filepath"], pool["num_threads"]) for pool in pools)


def interrupts(case, folder):
    """An interrupted fit leaves the estimator unfitted or whole; the next one works."""
    case.raising = case.strict = False
    X, _ = points.drawn(case, most=300)
    c = max(1, min(3, len(X) - 1))
    name = case.pick("ANCMM", "ANCMM", "CAN", "CLR", "ERCAN", "DSDC")
    model = getattr(bistochastic, name)(c)
    begin = time.perf_counter()
    if case.call(f"{name}.fit", model.fit, X).error is not None:
        return
    whole, took = set(vars(model)), time.perf_counter() - begin
    expected = model.labels_.copy()
    before = _pools()
    if case.chance(0.5):
        model = clone(model)
    moment = max(1e-4, took * case.rng.uniform(0, 1.1))
    case.note(f"interrupted after {moment:.4f} s of {took:.4f}")
    _interrupted(case, model.fit, X, moment)
    left = {key for key in vars(model) if key.endswith("_")}
    fitted = {key for key in whole if key.endswith("_")}
    seen = {"n_features_in_", "feature_names_in_"}
    case.check(
        "unfitted or whole",
        left <= seen or left == fitted,
        f"{name}: {sorted(left)} are left",
    )
    case.check("threads restored", _pools() == before, "after an interrupt")
    again = case.call("fit after an interrupt", model.fit, X)
    case.check(
        "works after an interrupt",
        again.error is None and np.array_equal(model.labels_, expected),
        f"{name}: {again.error!r}",
    )
    if hasattr(model, "affinity_matrix_") and name != "DSDC":
        number = parts(model.affinity_matrix_)[0]
        case.check("components", number == model.n_components_, name)


def _interrupted(case, function, X, moment):
    """Call, with a KeyboardInterrupt after a moment, as Ctrl-C sends it."""

    def interrupt(*_):
        raise KeyboardInterrupt

    case._pulse("an interrupted fit")
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            signal.setitimer(signal.ITIMER_REAL, moment)
            function(X)
    except (KeyboardInterrupt, Exception) as error:
        case.note(f"  {error!r}")  # some libraries make another error of an interrupt
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
