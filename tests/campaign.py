"""Hostile use of the whole library at random, and the promises that it keeps.

Run with ``python tests/campaign.py --minutes 30 --seed 1``. Cases are numbered; what
case N is depends on the seed and N only, and ``--seed 1 --only N`` runs it alone and
tells all about it. They run in processes that are ended when a call hangs. Prints how
many cases of each kind there were and each promise that was broken, and ends with 1 if
there is one.
"""

import argparse
import itertools
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections import Counter, defaultdict
from contextlib import suppress
from tempfile import TemporaryDirectory

from hostile.case import SLOWEST, Case

HANG = 3 * SLOWEST  # seconds without a sign of life; a busy machine is slow
START = 120  # seconds until a worker has to have loaded all libraries
# kind of case -> (file, function, how often)
KINDS = {
    "support": ("mappings", "support", 8),
    "mapping": ("mappings", "marcus", 20),
    "plan": ("mappings", "plan", 10),
    "projection": ("mappings", "projection", 10),
    "scaler": ("mappings", "scaler", 8),
    "neighbors": ("fits", "neighbors", 6),
    "ANCMM": ("fits", "ancmm", 30),
    "published": ("fits", "published", 12),
    "embedded": ("fits", "embedded", 8),
    "number": ("fits", "number", 1),
    "files": ("files", "readers", 3),
    "models": ("files", "models", 3),
    "commands": ("files", "commands", 1),
    "threads": ("together", "threads", 3),
    "interrupts": ("together", "interrupts", 3),
}


def run_case(seed, number, folder, pulse=lambda what: None):
    """Run one case; return it with what it found."""
    from importlib import import_module

    case = Case(seed, number, pulse)
    weights = [often for *_, often in KINDS.values()]
    share = case.rng.random() * sum(weights)
    place = next(i for i, w in enumerate(itertools.accumulate(weights)) if share < w)
    case.kind = [*KINDS][place]
    pulse(case.kind)
    file, function, _ = KINDS[case.kind]
    try:
        getattr(import_module(f"hostile.{file}"), function)(case, folder)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{error!r} in {where.filename}:{where.lineno}"
        case.check("the campaign itself works", False, text)
        case.note(traceback.format_exc())
    return case


def work(pipe, seed):
    """Run the cases whose numbers come through the pipe, in a process of its own."""
    os.setsid()  # so that it can be ended with all that it has started
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    with TemporaryDirectory() as folder:
        pipe.send(("ready", None))
        while (number := pipe.recv()) is not None:
            case = run_case(seed, number, folder, lambda w: pipe.send(("pulse", w)))
            made = (case.kind, case.refused, case.warned, case.checks, case.violations)
            pipe.send(("done", made))


class Worker:
    """A process that runs cases, started again whenever it dies or hangs."""

    def __init__(self, seed):
        self.seed = seed
        self.process = None

    def run(self, number):
        """Return what a case found: (kind, refused, warned, checks, violations)."""
        if self.process is None:
            self._start()
        doing = kind = "?"
        try:
            self.pipe.send(number)
            while self.pipe.poll(HANG):
                told, made = self.pipe.recv()
                if told == "done":
                    return made
                kind = made if kind == "?" else kind
                doing = made
            broken = "in time", f"{doing}: no end after {HANG} s"
        except (EOFError, OSError):
            self.process.join(5)
            broken = "no crash", f"{doing}: the process ended, {self.process.exitcode}"
        self.stop(kill=True)
        return kind, False, False, Counter([broken[0]]), [broken]

    def _start(self):
        context = multiprocessing.get_context("spawn")
        self.pipe, end = context.Pipe()
        self.process = context.Process(target=work, args=(end, self.seed))
        self.process.start()
        end.close()
        if not self.pipe.poll(START):
            raise SystemExit("A worker did not start.")
        self.pipe.recv()

    def stop(self, kill=False):
        """End the process, and with `kill` all that it has started."""
        if self.process is None:
            return
        if kill:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        else:
            self.pipe.send(None)
        self.process.join()
        self.process = None


def campaign(minutes, seed, jobs):
    """Run cases for so many minutes; return what each kind found, and violations."""
    end = time.monotonic() + 60 * minutes
    numbers, lock = itertools.count(), threading.Lock()
    table, checks, violations = defaultdict(Counter), Counter(), []

    def follow():
        worker = Worker(seed)
        while time.monotonic() < end:
            with lock:
                number = next(numbers)
            kind, refused, warned, counted, broken = worker.run(number)
            with lock:
                table[kind].update(cases=1, refused=refused, warned=warned)
                table[kind].update(violations=len(broken))
                checks.update(counted)
                for promise, detail in broken:
                    violations.append((number, kind, promise, detail))
                    print(f"case {number} ({kind}): {promise}: {detail}", flush=True)
        worker.stop()

    threads = [threading.Thread(target=follow) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return table, checks, violations


def report(table, checks, violations):
    """Print the counts, and again what was broken."""
    columns = ("cases", "refused", "warned", "violations")
    print(f"{'kind':12}" + "".join(f"{name:>12}" for name in columns))
    total = Counter()
    for kind in [kind for kind in (*KINDS, "?") if kind in table]:
        total.update(table[kind])
        print(f"{kind:12}" + "".join(f"{table[kind][name]:12,}" for name in columns))
    print(f"{'all':12}" + "".join(f"{total[name]:12,}" for name in columns))
    print("\nchecks of each promise:")
    for promise, number in sorted(checks.items()):
        print(f"  {number:10,}  {promise}")
    print(f"\n{total['cases']:,} cases, {len(violations)} violations")
    for number, kind, promise, detail in sorted(violations):
        print(f"  case {number} ({kind}): {promise}: {detail}")


def alone(seed, number):
    """Run one case in this process and tell all about it."""
    with TemporaryDirectory() as folder:
        case = run_case(seed, number, folder)
    print(f"seed {seed}, case {number}: {case.kind}", *case.notes, sep="\n  ")
    print("checks:", *(f"{k} x {v}" for k, v in case.checks.items()), sep="\n  ")
    print("violations:", *(f"{p}: {d}" for p, d in case.violations), sep="\n  ")
    return bool(case.violations)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", type=int)
    given = parser.parse_args()
    if given.only is not None:
        return alone(given.seed, given.only)
    found = campaign(given.minutes, given.seed, given.jobs)
    report(*found)
    return bool(found[2])


if __name__ == "__main__":
    sys.exit(main())
