"""The whole fit on a GPU: is it right, how fast is it, and how near to the floor.

Run with ``python benchmarks/gpu.py`` on a machine with one; ``--parts`` takes some of
*check* (the search against all pairs), *same* (labels of ten data sets by both paths),
*fits* (1,000,000 points, exact and approximate neighbors), *stages* (where the time
goes, and the floor), *large* (128 columns, and 10,000,000 points), *marcus* (the
mapping of 10^8 entries) and *cpu* (the same on all cores of the CPU).
``BISTOCHASTIC_DATA`` may name a folder with the sets of the paper; ``--record
file.json`` keeps the numbers.

Seconds are medians of `--repeats` runs after one that is not counted, in which Triton
compiles, with the data in a NumPy array at first and the labels in one at last;
*all* is the same with graph, embedding and points fetched as well.
"""

import argparse
import os
import statistics
import time
import warnings
from collections import Counter
from functools import partial, wraps

import numpy as np

from bistochastic import ANCMM, marcus_mapping
from bistochastic.metrics import clustering_accuracy
from printed import INTO, Table

K, C = 15, 20


def data(kind, n, d):
    """Return points, and labels if there are any."""
    from sklearn.datasets import make_blobs

    if kind == "uniform":
        return np.random.default_rng(0).random((n, d)), None
    return make_blobs(n, d, centers=C, cluster_std=float(kind), random_state=0)


def clocked(make, repeats, warm=1):
    """Return the median of the seconds that a function takes, and its last result."""
    import torch

    seconds = []
    for turn in range(repeats + warm):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        made = make()
        torch.cuda.synchronize()
        if turn >= warm:
            seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds), made


def machine():
    """Print what the machine is, and its ceilings."""
    import torch

    a = torch.randn(1 << 29, device="cuda")
    b = torch.empty_like(a)
    seconds, _ = clocked(lambda: b.copy_(a), 9, 3)
    copied = 2 * a.numel() * 4 / seconds
    a = b = None
    A = torch.randn(8192, 8192, device="cuda")
    torch.backends.cuda.matmul.allow_tf32 = True
    seconds, _ = clocked(lambda: A @ A, 9, 3)
    torch.backends.cuda.matmul.allow_tf32 = False
    rate = 2 * 8192**3 / seconds
    made = Table("Machine", "device", "torch", "cores", "copy TB/s", "tf32 TFLOP/s")
    name, version = torch.cuda.get_device_name(), torch.__version__
    made.row(name, version, os.cpu_count(), copied / 1e12, rate / 1e12)
    return copied, rate


def check():
    """Compare the search with all pairs in doubles."""
    import torch

    from bistochastic.places.torch_device import measures as torch_measures
    from bistochastic.places.torch_device import search as torch_search
    from bistochastic.places.torch_device import triton_kernels

    made = Table("Neighbors against all pairs", "n", "d", "points looked at", "same")
    rng = np.random.default_rng(0)
    for n, d in ((30_000, 2), (30_000, 16), (20_000, 40), (10_000, 200), (10**6, 16)):
        X = rng.random((n, d)) + (n < 10**6) * rng.integers(0, 3, (n, 1))
        X = torch.from_numpy(X - np.median(X, axis=0)).cuda()
        some = torch.from_numpy(rng.choice(n, 200, replace=False)).cuda()
        columns, costs, _ = torch_search.neighbors(X, K, "exact", triton_kernels)
        true, far = torch_measures.all_pairs(X, some, K)
        equal = bool((columns[some] == true).all() and (costs[some] == far).all())
        made.row(n, d, len(some), equal)
        if not equal:
            raise SystemExit("The search is wrong; nothing else is measured.")


def same():
    """Compare labels, and look at the row sums."""
    from bistochastic.datasets import load

    names = ["tr41", "orl", "arsmall", "letter", "yale", "wine", "feret", "movement"]
    head = ["set", "n", "d", "c", "refine", "same labels", "row sums off by"]
    made = Table("Ten data sets, CPU and GPU", *head)
    for name in [*names, "ecoli", "yeast"]:
        try:
            held = load(name)
        except (OSError, ValueError) as error:
            made.row(name, "", "", "", "", "", str(error)[:60])
            continue
        X = np.asarray(held.data, dtype=float)
        width = np.ptp(X, axis=0)
        X = (X - X.min(axis=0)) / np.where(width > 0, width, 1.0)
        c = len(np.unique(held.target))
        for refine in ("auto", None):
            make = partial(ANCMM, c, n_neighbors=10, refine=refine, tol=1e-10)
            here = make().fit(X)
            there = make(device="cuda").fit(X)
            sums = np.abs(there.affinity_matrix_.sum(axis=1) - 1).max()
            equal = bool((here.labels_ == there.labels_).all())
            made.row(name, *X.shape, c, refine, equal, float(sums))


def fit(X, **options):
    """Fit once, the labels fetched."""
    options = {"n_neighbors": K} | options
    return ANCMM(C, **options).fit(X)


def whole(X, **options):
    """Fit once, all results fetched."""
    model = fit(X, **options)
    model.__getstate__()
    return model


def quality(model, y):
    """Return what a fit came to."""
    found = clustering_accuracy(y, model.labels_) if y is not None else "-"
    last = model.history_[-1]
    return [
        model.n_components_,
        found,
        float(model.history_[0]["recall"]),
        float(last["residual"]),
        model.n_iter_,
    ]


HEAD = ["components", "ACC", "recall", "row sums off by", "steps"]


def fits(repeats):
    """Time fits of a million points."""
    import torch

    head = ["data", "neighbors", "s", "s, all", "GiB", *HEAD]
    made = Table("1,000,000 x 16, c = 20, k = 15", *head)
    for kind in ("2.5", "5", "uniform"):
        X, y = data(kind, 1_000_000, 16)
        for how in ("exact", 0.98):
            torch.cuda.reset_peak_memory_stats()
            run = partial(fit, X, device="cuda", neighbors=how)
            seconds, model = clocked(run, repeats)
            peak = torch.cuda.max_memory_allocated() / 2**30
            run = partial(whole, X, device="cuda", neighbors=how)
            every, _ = clocked(run, 1, 0)
            made.row(kind, how, seconds, every, peak, *quality(model, y))
    single = partial(fit, X, device="cuda", neighbors=0.98, precision="single")
    seconds, model = clocked(single, repeats)
    made.row("uniform, singles", 0.98, seconds, "", "", *quality(model, None))


def large():
    """Time fits of wider and of more points."""
    import torch

    made = Table("More", "blobs, spread 5", "neighbors", "s", "GiB", *HEAD)
    for n, d, how in (
        (1_000_000, 128, "exact"),
        (1_000_000, 128, 0.98),
        (10_000_000, 16, 0.95),
    ):
        X, y = data("5", n, d)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        run = partial(fit, X, device="cuda", neighbors=how)
        seconds, model = clocked(run, 1, int(n < 10**7))
        peak = torch.cuda.max_memory_allocated() / 2**30
        made.row(f"{n:,} x {d}", how, seconds, peak, *quality(model, y))


class Stages:
    """Seconds of functions, less those of functions inside them."""

    def __init__(self):
        self.seconds, self.calls, self._inside = Counter(), Counter(), []

    def watch(self, owner, name, stage):
        """Measure one function from now on."""
        import torch

        held = getattr(owner, name)

        @wraps(held)
        def timed(*args, **options):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            self._inside.append(0.0)
            try:
                return held(*args, **options)
            finally:
                torch.cuda.synchronize()
                spent = time.perf_counter() - begin
                self.seconds[stage] += spent - self._inside.pop()
                self.calls[stage] += 1
                if self._inside:
                    self._inside[-1] += spent

        setattr(owner, name, timed)


def stages(copied, rate):
    """Print where the time of one fit goes, and the least that it could take."""
    from bistochastic.cluster import exact_count, graphs, loop, trials
    from bistochastic.core.recurrence import recurrence
    from bistochastic.graph import components
    from bistochastic.places import tables as costs
    from bistochastic.places.torch_device import build as torch_build
    from bistochastic.places.torch_device import cells as torch_cells
    from bistochastic.places.torch_device import csr as torch_csr
    from bistochastic.places.torch_device import device, triton_kernels
    from bistochastic.places.torch_device import measures as torch_measures
    from bistochastic.places.torch_device import search as torch_search
    from bistochastic.spectrum import filtered

    watch = Stages()
    for owner, name, stage in (
        (device.TorchDevice, "checked", "to the device"),
        (device.TorchDevice, "order", "order"),
        (torch_search, "neighbors", "neighbors, rest"),
        (torch_cells, "divided", "neighbors, cells"),
        (torch_measures, "first_bounds", "neighbors, bounds"),
        (torch_search._Search, "_nearest", "neighbors, measured"),
        (triton_kernels, "within", "neighbors, pairs"),
        (trials, "refined", "local scales"),
        (costs.TableCosts, "plus", "rows, distances of F"),
        (costs.TableCosts, "weigh", "rows, weights"),
        (costs.TableCosts, "symmetrized", "symmetrized"),
        (torch_build, "merged", "symmetrized, pattern once"),
        (graphs, "diagonal_of", "scaling"),
        (exact_count, "bridges", "bridges"),
        (loop, "ky_fan", "spectrum, rest"),
        (filtered, "_orthonormal", "spectrum, bases"),
        (loop, "objective", "objective"),
        (loop, "components", "components"),
        (exact_count, "components", "components"),
        (trials.Trials, "fitted", "fitted"),
    ):
        watch.watch(owner, name, stage)
    for text, stage in (
        (recurrence, "spectrum, filters"),
        (components.search, "components"),
    ):
        holder = type("Holder", (), {"body": torch_csr.BODIES[text]})
        watch.watch(holder, "body", stage)
        torch_csr.BODIES[text] = holder.body
    for kind in ("5", "uniform"):
        X, _ = data(kind, 1_000_000, 16)
        fit(X, device="cuda", neighbors="exact")
        watch.seconds.clear()
        watch.calls.clear()
        begin = time.perf_counter()
        model = fit(X, device="cuda", neighbors="exact")
        spent = time.perf_counter() - begin
        n, d = X.shape
        nnz, steps = model.affinity_matrix_.nnz, model.n_iter_ - 1
        products = sum(h["embedding_products"] for h in model.history_)
        scaled = sum(h["n_products"] for h in model.history_)
        done = model.n_iter_
        least = {  # stage -> (bytes, operations)
            "neighbors, cells": (20 * n * d * 8, 0),
            "neighbors, pairs": (n * d * 4, 2.0 * n * n * d),
            "neighbors, measured": (n * 24 * d * 8 + n * K * 12, 0),
            "rows, distances of F": (steps * n * (K + 1) * (8 * C + 20), 0),
            "rows, weights": ((done + 1) * n * (K + 1) * 16, 0),
            "symmetrized": (done * (nnz * 24 + n * (K + 1) * 8), 0),
            "symmetrized, pattern once": (2 * 2 * n * (K + 1) * 24, 0),
            "scaling": (scaled * 12 * nnz, 0),
            "spectrum, filters": (products * (8 * nnz + 3 * 128 * n) / 25, 0),
            "components": (2 * done * 4 * nnz, 0),
        }
        head = ["stage", "calls", "s", "GB", "TFLOP", "floor, s", "times the floor"]
        made = Table(f"Stages, {kind}", *head)
        for stage, seconds in watch.seconds.most_common():
            moved, count = least.get(stage, (0, 0))
            floor = max(moved / copied, count / rate)
            ratio = seconds / floor if floor else ""
            cells = [stage, watch.calls[stage], seconds, moved / 1e9 or ""]
            made.row(*cells, count / 1e12 or "", floor or "", ratio)
        made.row("rest", "", spent - sum(watch.seconds.values()), "", "", "", "")
        made.row("all, waiting after each stage", "", spent, "", "", "", "")


def graph(n=1_000_000, half=50, reach=400):
    """Return a symmetric CSR matrix of about 10^8 entries, neighbors close by."""
    import torch

    from bistochastic.places.torch_device.csr import TorchCsr

    source = torch.Generator("cuda").manual_seed(0)
    i = torch.arange(n, device="cuda").repeat_interleave(half)
    step = (reach - 1) // half  # one of so many points each, so that none comes twice
    j = torch.randint(1, step + 1, i.shape, generator=source, device="cuda")
    j += step * torch.arange(half, device="cuda").repeat(n)
    w = torch.rand(i.shape, generator=source, device="cuda", dtype=torch.float64)
    w = torch.exp(2 * w)
    i, j = torch.cat([i, i[::half]]), torch.cat([(i + j) % n, i[::half]])
    w = torch.cat([w, torch.ones(n, device="cuda", dtype=torch.float64)])
    return TorchCsr.symmetrized(i, j, w, n).native()


def products(S, u, number):
    """Multiply, one product after the other as the mapping does."""
    for _ in range(number):
        S.apply(u)


def mapping(copied, repeats, cpu):
    """Time the mapping of a large graph."""
    import torch

    from bistochastic.places.torch_device.build import to_scipy
    from bistochastic.places.torch_device.csr import TorchCsr

    head = ["neighbors", "entries", "products", "row sums off by", "ms a product"]
    head += ["of copy bandwidth", "ms, whole call", "of copy bandwidth, whole call"]
    made = Table("marcus_mapping", *head, "s, CPU", "times faster")
    for name, reach in (("close by", 401), ("anywhere", 500_000)):
        S = graph(reach=reach)
        nnz = S.values().shape[0]
        held = TorchCsr(S)
        u = held.ones()
        several = partial(products, held, u, 10)
        seconds = clocked(several, 20, 3)[0] / 10
        rate = (12 * nnz + 20 * held.n) / seconds
        every, result = clocked(lambda S=S: marcus_mapping(S), repeats)
        moved = result.n_products * 12 * nnz + 3 * 12 * nnz
        there = result.matrix
        sums = float((there @ torch.ones_like(u) - 1).abs().max())
        ratio = here = ""
        if cpu and reach == 401:
            A = to_scipy(S)
            marcus_mapping(A)
            begin = time.perf_counter()
            other = marcus_mapping(A)
            here = time.perf_counter() - begin
            ratio = here / every
            gap = abs(other.scaling / result.scaling.cpu().numpy() - 1).max()
            assert gap < 1e-8, gap
        made.row(
            name,
            nnz,
            result.n_products,
            sums,
            1e3 * seconds,
            rate / copied,
            1e3 * every,
            moved / every / copied,
            here,
            ratio,
        )


def on_cpu():
    """Time the same fits on all cores."""
    fit(np.random.default_rng(0).random((20_000, 16)))  # loads what is compiled
    made = Table("CPU, all cores", "data", "s", *HEAD)
    for kind in ("5", "2.5", "uniform"):
        X, y = data(kind, 1_000_000, 16)
        begin = time.perf_counter()
        model = fit(X)
        made.row(kind, time.perf_counter() - begin, *quality(model, y))


def main():
    """Run what is asked for."""
    parts = ("check", "same", "marcus", "fits", "stages", "large", "cpu")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--record")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    INTO.extend([asked.record] if asked.record else [])
    copied, rate = machine()
    for part in asked.parts:
        {
            "check": check,
            "same": same,
            "fits": lambda: fits(asked.repeats),
            "large": large,
            "marcus": lambda: mapping(copied, asked.repeats, "cpu" in asked.parts),
            "cpu": on_cpu,
            "stages": lambda: stages(copied, rate),
        }[part]()


if __name__ == "__main__":
    main()
