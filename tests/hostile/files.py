"""Promises of readers, saved models and the command line."""

import io
import json
import os
import random
import signal
import subprocess
import sys
import threading
import zipfile
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

import bistochastic
import fuzz
from bistochastic.io import load, save

PATIENCE = 60  # seconds for a command
STATUSES = (0, 2, 3, 4, 5)  # 1 is "an error of bistochastic"
JUNK = (None, -1, 0, 3, 2**40, -0.5, "x", [], [1, "a"], True, {"float": "nan"})


@cache
def good_files(folder):
    """Return the good files of the fuzzer, made once for a process."""
    return fuzz.seeds(Path(mkdtemp(dir=folder)))


def readers(case, folder):
    """Mutated files end in a table or a sentence; the fuzzer makes and reads them."""
    known, rng = good_files(folder), random.Random(int(case.rng.integers(1 << 40)))
    here = [kind for kind in known if kind not in fuzz.APART]
    kind = case.pick(*here) if case.chance(0.9) else case.pick(*known)
    case.note(f"mutated files of kind {kind}")
    apart = kind in fuzz.APART  # libraries that may crash: in another process, slow
    case.raising = case.strict = False  # files with infinite numbers are for others
    for _ in range(1 if apart else 40):
        name, data = rng.choice(known[kind])
        zipped = data[:2] == b"PK" and rng.random() < 0.5
        path = Path(folder) / f"{case.number}-{name}"
        path.write_bytes((fuzz.rezipped if zipped else fuzz.mutated)(data, rng))
        case.call(f"read {path.name}", _quietly(fuzz.read), kind, path, apart)
        path.unlink()


def _quietly(read):
    """Hide the warnings about overflow in what was read: the numbers are hostile."""

    def quiet(*args):
        import warnings

        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return read(*args)

    return quiet


def models(case, folder):
    """A saved model is the same again; one that was tampered with is refused."""
    X = case.rng.normal(size=(int(case.rng.integers(8, 40)), 3))
    case.raising = case.strict = False
    name = case.pick("ANCMM", "ANCMM", "CAN", "CLR", "ERCAN", "PCAN")
    metric = {} if name == "PCAN" else {"metric": case.pick("euclidean", "cosine")}
    model = getattr(bistochastic, name)(2, n_neighbors=4, **metric)
    case.note(repr(model))
    if case.call("fit", model.fit, X).value is None:
        return
    path = Path(folder) / f"{case.number}.model"
    case.call("save", save, model, path)
    again = case.call("load", load, path).value
    if case.check("saved models are the same", again is not None, "not loaded"):
        same = np.array_equal(again.predict_proba(X), model.predict_proba(X))
        case.check("saved models are the same", same, "predict_proba")
    data = path.read_bytes()
    for _ in range(8):
        path.write_bytes(_tampered(case, data))
        loaded = case.call("load what was tampered with", load, path).value
        if loaded is not None:
            case.call("predict", loaded.predict, X)
            case.call("predict_proba", loaded.predict_proba, X)
    path.unlink()


def _tampered(case, data):
    """Return an archive with one member dropped or changed, sound as such."""
    old = zipfile.ZipFile(io.BytesIO(data))
    members = {name: old.read(name) for name in old.namelist()}
    about, arrays = "about.json", [name for name in members if name.endswith(".npy")]
    what = case.pick("drop", "array", "array", "array", "attribute", "attribute")
    if what == "drop":
        del members[case.pick(*members)]
    elif what == "array":
        name = case.pick(*arrays)
        out = io.BytesIO()
        np.save(out, _changed(case, np.load(io.BytesIO(members[name]))))
        members[name] = out.getvalue()
        case.note(f"tampered: {name}")
    else:
        told = json.loads(members[about])
        pairs = told["value"]["dict"][0][1]["dict"]
        at = int(case.rng.integers(len(pairs)))
        if case.chance(0.3):
            del pairs[at]
        else:
            pairs[at][1] = case.pick(*JUNK)
            case.note(f"tampered: {pairs[at]}")
        members[about] = json.dumps(told).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as new:
        for name, held in members.items():
            new.writestr(name, held)
    return out.getvalue()


def _changed(case, A):
    """Return an array with another shape, type or size of numbers."""
    what = case.pick("short", "flat", "float", "int", "huge", "negative", "none", "nan")
    with np.errstate(all="ignore"):
        if what == "short" and A.ndim:
            return A[:-1]
        if what == "flat":
            return A.reshape(-1)
        if what in ("float", "int"):
            return A.astype({"float": np.float32, "int": np.int8}[what])
        if what == "huge":
            return A * 2.0**62 if A.dtype.kind == "f" else A + 2**30
        if what == "negative":
            return -A if A.dtype.kind != "b" else ~A
        if what == "nan" and A.dtype.kind == "f":
            return np.where(np.arange(A.size).reshape(A.shape) == 0, np.nan, A)
    return A[:0] if A.ndim else A


def commands(case, folder):
    """The command line ends in time with a status that it documents, as told."""
    home = Path(mkdtemp(dir=folder))
    X = case.rng.normal(size=(40, 2)) + 8 * (np.arange(40) % 2)[:, None]
    text = "\n".join(",".join(map(repr, row)) for row in X.tolist()) + "\n"
    case.pick(_pipe, _unread_pipe, _odd_name, _odd_options, _own_input)(
        case, home, text
    )


def _pipe(case, home, text):
    """A named pipe is read once, or refused."""
    path = home / case.pick("points.csv", "points.tsv", "points.npy", "points")
    os.mkfifo(path)

    def write():
        try:
            with open(path, "w") as stream:
                stream.write(text)
        except OSError:
            pass

    threading.Thread(target=write, daemon=True).start()
    _command(case, home, "cluster", path, "-c", "2")


def _unread_pipe(case, home, text):
    """Who waits for a pipe that nobody writes to ends when told to."""
    path = home / "nobody.csv"
    os.mkfifo(path)
    name = case.pick("SIGINT", "SIGTERM")
    _command(case, home, "cluster", path, "-c", "2", stop=getattr(signal, name))


def _odd_name(case, home, text):
    names = (
        b"\xff\xfe.csv", b"a b.csv", b"-x.csv", b"a::b.csv", b"a\nb.csv", b"%s.csv",
        b".csv", b"x.CSV.", b"a" * 250, b"'quoted\".csv", "\u6f22\u202e.csv".encode(),
    )  # fmt: skip
    path = os.path.join(os.fsencode(home), case.pick(*names))
    with open(path, "w") as stream:
        stream.write(text)
    _command(case, home, "cluster", path, "-c", "2", "--labels", home / "out.csv")


def _odd_options(case, home, text):
    path = home / "points.csv"
    path.write_text(text)
    options = case.pick(
        ("--separator", "\u00e4"), ("--separator", ""), ("--skip", "1000000000"),
        ("--jobs", str(10**30)), ("-c", "1" + "0" * 30), ("--labels", "/"),
        ("--neighbors", "nan"), ("--labels", home / "no" / "where.csv"),
        ("--scale", "x"), ("--metric", "\udcff"), ("--id", "\x1b[31m"),
        ("--max-memory", "1e400GB"),
    )  # fmt: skip
    _command(case, home, "cluster", path, "-c", "2", *options)


def _own_input(case, home, text):
    """Nothing that is read is written over, under whatever name."""
    path = home / "s.npy"
    S = case.rng.random((9, 9))
    np.save(path, S + S.T)
    other = home / case.pick("s.npy", "link.npy", "hard.npy")
    if other.name == "link.npy":
        other.symlink_to(path)
    if other.name == "hard.npy":
        other.hardlink_to(path)
    before = path.read_bytes()
    _command(case, home, "scale", path, "--out", other, "--force")
    case.check("input untouched", path.read_bytes() == before, f"--out {other.name}")


def _command(case, home, *words, stop=None):
    """Run a command; its status is a documented one, and no traceback shows."""
    words = [os.fsencode(word) for word in words]
    case.note(f"bistochastic {words}")
    case._pulse(f"bistochastic {words}")
    run = subprocess.Popen(
        [sys.executable, "-m", "bistochastic", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=home,
    )
    try:
        if stop is not None:
            try:
                run.wait(10)  # long enough to have started, also on a busy machine
            except subprocess.TimeoutExpired:
                run.send_signal(stop)
        _, said = run.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        run.kill()
        run.communicate()
        told = f" and {stop.name}" if stop else ""
        case.check("in time", False, f"{words}: not over after {PATIENCE} s{told}")
        return
    allowed = STATUSES if stop is None else (*STATUSES, 130, 143)
    case.check("in time", True)
    case.refused |= run.returncode in (2, 3, 4)
    told = said.decode(errors="replace").strip()
    case.note(f"  status {run.returncode}: {told}")
    case.check(
        "only documented errors",
        run.returncode in allowed and "Traceback" not in told,
        f"{words}: status {run.returncode}: {told[-200:]}",
    )
