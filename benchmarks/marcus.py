"""The Marcus mapping, its methods and its peers, to a residual of 1e-8.

``make bench`` runs all of it in ten minutes; ``python benchmarks/marcus.py --n 20000
"two moons"`` runs a part. Everything runs in one process with the same number of
threads. A time is the least of up to 15 runs, the methods in turn. *Of products* is
that time over what the counted products would take if each were one ``S @ v`` of SciPy
(NumPy for the dense kernel), so it holds all checks of the input and the making of the
result. *Memory* is the peak of what NumPy allocated beyond the result, in multiples of
the input.
"""

import argparse
import logging
import tempfile
import time
import tracemalloc
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from scipy.sparse import coo_matrix, issparse, triu
from threadpoolctl import threadpool_limits

from bistochastic import marcus_mapping
from families import FAMILIES, five_clusters

TOL = 1e-8
METHODS = ("auto", "newton", "damped", "alternating")
PASSES = 10_000  # for methods that may need more than anyone would wait for
PEER = "    {:<22} {:>7} passes {:>9.3f} s, {:>8.1f} times auto, residual {:.1e}"


def best_of(calls, times=15, patience=5):
    """Return results and least times of calls in turn, so that all see the same noise.

    A call that has taken `patience` seconds in all is not repeated.
    """
    spent = dict.fromkeys(calls, 0.0)
    least = dict.fromkeys(calls, np.inf)
    results = {}
    for _ in range(times):
        for name, call in calls.items():
            if spent[name] > patience:
                continue
            start = time.perf_counter()
            results[name] = call()
            seconds = time.perf_counter() - start
            spent[name] += seconds
            least[name] = min(least[name], seconds)
    return results, least


def peak(call):
    """Return the most bytes that a call holds beyond what there was."""
    tracemalloc.start()
    call()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def nbytes(S):
    parts = (S.data, S.indices, S.indptr) if issparse(S) else (S,)
    return sum(part.nbytes for part in parts)


def settings(method):
    slow = method in ("damped", "alternating")
    return {"method": method, "tol": TOL, "max_iter": PASSES if slow else None}


def measured(S):
    """Run the methods in turn with the plain product; return one row for each."""
    v = np.ones(S.shape[0])
    calls = {m: partial(marcus_mapping, S, **settings(m)) for m in METHODS}
    few = {
        m: partial(marcus_mapping, S, **settings(m) | {"max_iter": 5}) for m in METHODS
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the table says how it ended
        marcus_mapping(S, tol=TOL)  # compiles
        results, seconds = best_of(calls | {"S @ v": lambda: S @ v})
        _, again = best_of({"S @ v": lambda: S @ v}, 100)
        memory = {
            m: peak(few[m] if m in ("damped", "alternating") else calls[m])
            for m in METHODS
        }
    product = min(seconds["S @ v"], again["S @ v"])
    return product, {
        method: {
            "products": results[method].n_products,
            "seconds": seconds[method],
            "of products": seconds[method] / (results[method].n_products * product),
            "memory": memory[method] / nbytes(S) - 1,
            "residual": results[method].residual,
            "ended": results[method].status.name.lower(),
        }
        for method in METHODS
    }


def family(name, n):
    """Print the table of one family and return what the verdict needs."""
    S = FAMILIES[name](n)
    product, rows = measured(S)
    print(
        f"\n{name}: n = {S.shape[0]:,}, {S.nnz if issparse(S) else S.size:,} entries, "
        f"{nbytes(S) / 1e6:.1f} MB, one product {1e3 * product:.2f} ms\n"
        f"    {'method':<12} {'products':>8} {'seconds':>9} {'of products':>11} "
        f"{'memory':>7} {'residual':>9}  ended"
    )
    for method, row in rows.items():
        print(
            f"    {method:<12} {row['products']:>8,} {row['seconds']:>9.4f} "
            f"{row['of products']:>11.2f} {row['memory']:>7.2f} "
            f"{row['residual']:>9.1e}  {row['ended']}",
            flush=True,
        )
    if issparse(S):
        for peer in (by_hand, by_iced, by_cooler):
            against(peer, S, rows["auto"]["seconds"])
    return rows


def against(peer, S, ours):
    """Time a peer and the residual that it reaches."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            start = time.perf_counter()
            u, passes = peer(S)
            seconds = time.perf_counter() - start
        except ImportError:
            print(f"    {peer.__doc__.split(':')[0]}: not installed")
            return
        error = np.abs(u * (S @ u) - 1).max()
    name = peer.__doc__.split(":")[0]
    print(PEER.format(name, passes, seconds, seconds / ours, error), flush=True)


def by_hand(S):
    """SciPy Sinkhorn: the ten lines that people write."""
    u = v = np.ones(S.shape[0])
    for passes in range(1, PASSES + 1):
        Su = S @ u
        if passes > 1 and np.abs(v * Su - 1).max() <= TOL:
            break
        v = 1 / Su
        u = 1 / (S @ v)
    return np.sqrt(u * v), passes


def by_iced(S, passes=300):
    """iced: ICE as Hi-C users run it, to a change of 1e-8."""
    from iced.normalization import ICE_normalization

    _, bias = ICE_normalization(
        coo_matrix(S), max_iter=passes, eps=1e-8, output_bias=True
    )
    u = 1 / np.asarray(bias).ravel()
    return u / np.sqrt(np.mean(u * (S @ u))), f"<={passes}"


def by_cooler(S, passes=200):
    """cooler: balance_cooler without its filters, 200 passes (its default)."""
    import cooler
    import pandas as pd

    logging.getLogger("cooler").setLevel(logging.ERROR)
    T = triu(S, format="coo")
    n = S.shape[0]
    bins = pd.DataFrame(
        {"chrom": "1", "start": np.arange(n), "end": np.arange(1, n + 1)}
    )
    pixels = {"bin1_id": T.coords[0], "bin2_id": T.coords[1], "count": T.data}
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "S.cool")
        cooler.create_cooler(
            path, bins, pd.DataFrame(pixels), dtypes={"count": float}, ordered=False
        )
        u, _ = cooler.balance_cooler(
            cooler.Cooler(path),
            ignore_diags=False,
            mad_max=0,
            min_nnz=0,
            tol=1e-18,
            max_iters=passes,
        )
    return u, f"<={passes}"


def against_pot():
    """Compare with POT's sinkhorn on a dense kernel, at the residual it reaches."""
    try:
        import ot
    except ImportError:
        print("\nPOT is not installed")
        return
    K = five_clusters()
    ones = np.ones(len(K))
    cost = -np.log(np.maximum(K, 1e-300))

    def pot():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ot.sinkhorn(ones, ones, cost, 1.0, numItermax=20_000, stopThr=TOL)

    start = time.perf_counter()
    P = pot()
    theirs = time.perf_counter() - start
    residual = max(np.abs(P.sum(axis=a) - 1).max() for a in (0, 1))
    tol = max(residual, 1e-12)
    results, least = best_of({"auto": lambda: marcus_mapping(K, tol=tol)})
    result, ours = results["auto"], least["auto"]
    print(
        f"\nfive separated clusters, dense Gaussian kernel, n = {len(K):,}\n"
        f"    POT sinkhorn {theirs:.2f} s to a residual of {residual:.1e}; auto "
        f"{ours:.4f} s to {result.residual:.1e} in {result.n_products} products: "
        f"{theirs / ours:.0f} times faster; largest difference of the two "
        f"{np.abs(P - result.matrix).max():.1e}"
    )


def verdict(tables):
    """Hold the measurements against the goals."""
    print("\nGoals, to 1e-8 (auto):")

    def times(name, method):
        row = tables[name][method]
        over = "" if row["ended"] == "converged" else "over "
        return f"{over}{row['products'] / tables[name]['auto']['products']:.0f}"

    for name in ("nearly decoupled", "two moons", "two moons, no self"):
        if name in tables:
            print(
                f"    Algorithm 1 / auto, products, {name}: {times(name, METHODS[3])}"
            )
    name = "log-normal, sigma 3"
    if name in tables:
        for method in ("alternating", "damped"):
            print(f"    {method} / auto, products, {name}: {times(name, method)}")
    ended = [rows["auto"]["ended"] for rows in tables.values()]
    print(f"    converged on {ended.count('converged')} of {len(ended)} families")
    for key in ("of products", "memory"):
        worst = max(tables, key=lambda name: tables[name]["auto"][key])
        print(f"    largest {key}: {tables[worst]['auto'][key]:.2f} ({worst})")
    for key in ("products", "seconds"):
        ratio = {
            name: rows["auto"][key]
            / min(
                rows[m][key]
                for m in ("newton", "damped")
                if rows[m]["ended"] == "converged"
            )
            for name, rows in tables.items()
        }
        worst = max(ratio, key=ratio.get)
        print(f"    largest {key} over the better method: {ratio[worst]:.2f} ({worst})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "families", nargs="*", metavar="FAMILY", help=", ".join(map(repr, FAMILIES))
    )
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args()
    unknown = set(chosen.families) - set(FAMILIES)
    if unknown:
        parser.error(f"no such family: {', '.join(unknown)}")
    with threadpool_limits(limits=chosen.threads):
        tables = {name: family(name, chosen.n) for name in chosen.families or FAMILIES}
        if not chosen.families:
            against_pot()
    verdict(tables)


if __name__ == "__main__":
    main()
