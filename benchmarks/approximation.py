"""How near the mapping comes to the exact step: Eq. (23) and the gap of Eq. (13).

Run with ``python benchmarks/approximation.py``. For each data set, the last step of
``ANCMM.paper``: epsilon relative to the squared norm of the rows, the objective of Eq.
(13) above its exact minimum, the distance to the exact solution, and how far the
partition agrees with that of ``graph_update="exact"`` (adjusted Rand index).
"""

import warnings

from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import minmax_scale

from bistochastic import ANCMM


def main():
    warnings.simplefilter("ignore")
    moons = make_moons(200, noise=0.05, random_state=0)
    sets = {
        "Wine, [0, 1]": (minmax_scale(load_wine().data), 3, 30),
        "Iris, [0, 1]": (minmax_scale(load_iris().data), 3, 15),
        "Breast cancer, [0, 1]": (minmax_scale(load_breast_cancer().data), 2, 20),
        "Two moons, n = 200": (moons[0], 2, 10),
    }
    print("| data | k | epsilon / norm | gap / objective | distance | same clusters |")
    print("|---|---|---|---|---|---|")
    for name, (X, c, k) in sets.items():
        model = ANCMM.paper(c, k).fit(X)
        exact = ANCMM.paper(c, k).set_params(graph_update="exact").fit(X)
        found = model.approximation(X)
        same = adjusted_rand_score(model.labels_, exact.labels_)
        print(
            f"| {name} | {k} | {found.relative_epsilon:.3f} | "
            f"{found.gap / found.exact:.3f} | {found.relative_distance:.2f} | "
            f"{same:.2f} |"
        )


if __name__ == "__main__":
    main()
