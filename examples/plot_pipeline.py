"""
In pipelines of scikit-learn
============================

ANCMM is a scikit-learn estimator: it can be cloned, set, searched over and put at the
end of a pipeline, takes data frames and remembers their columns. Each part below
asserts what it says. The data are Wine: 178 rows, 13 columns of different units.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine, make_moons
from sklearn.decomposition import PCA
from sklearn.feature_selection import VarianceThreshold
from sklearn.metrics import silhouette_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsTransformer
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from bistochastic import ANCMM, plot
from bistochastic.metrics import clustering_accuracy

X, y = load_wine(return_X_y=True, as_frame=True)

# %%
# Scale, project, cluster. The number of neighbors is chosen without labels. ``predict``
# goes through the same steps, and gives the rows of ``fit`` their labels again.
# K-Means in the same place does as well: the three clusters of Wine are round.

pipeline = make_pipeline(
    StandardScaler(), PCA(5, random_state=0), ANCMM(3, random_state=0)
)
labels = pipeline.fit_predict(X)
assert (pipeline.predict(X) == labels).all()
kmeans = clone(pipeline).set_params(ancmm=KMeans(3, n_init=10, random_state=0))
print(f"ANCMM:   accuracy {clustering_accuracy(y, labels):.3f}")
print(f"K-Means: accuracy {clustering_accuracy(y, kmeans.fit_predict(X)):.3f}")

# %%
# ``clone`` copies the parameters and not the result. A second fit is the same.

again = clone(pipeline)
assert not hasattr(again[-1], "labels_")
assert again.get_params()["ancmm__n_clusters"] == 3
assert (again.fit_predict(X) == labels).all()

# %%
# A search over the number of neighbors. There is no score to take by default, and there
# are no labels: the scorer is a function that gets the fitted pipeline and the data.
# Nothing is held out, since ``cv`` has one split, of all rows and all rows; with folds
# the score would be that of ``predict``, for fits to fewer rows, to which another
# number of neighbors belongs.


def silhouette(fitted, X, y=None):
    """Score the clusters in the space that they were found in."""
    return silhouette_score(fitted[:-1].transform(X), fitted.predict(X))


every = np.arange(len(X))
numbers = [5, 7, 10, 14, 20, 28, 40]
search = GridSearchCV(
    pipeline,
    {"ancmm__n_neighbors": numbers},
    scoring=silhouette,
    cv=[(every, every)],
).fit(X)
scores = search.cv_results_["mean_test_score"]
right = []
for k, score in zip(numbers, scores, strict=True):
    one = clone(pipeline).set_params(ancmm__n_neighbors=k)
    right.append(clustering_accuracy(y, one.fit_predict(X)))
    assert np.isclose(score, silhouette(one, X))  # the search did what a loop does
best = search.best_params_["ancmm__n_neighbors"]
print(f"search:  accuracy {right[numbers.index(best)]:.3f} with {best} neighbors,")
print(f"         auto chose {pipeline[-1].n_neighbors_}; silhouettes {scores.round(3)}")

# %%
# The silhouette likes round clusters, and so chooses a number of neighbors that makes
# them round. On two moons that is the wrong one. The agreement that ``"auto"`` looks at
# is not misled.

moons, moon = make_moons(300, noise=0.07, random_state=0)
tried = {k: ANCMM(2, n_neighbors=k, random_state=0).fit_predict(moons) for k in numbers}
roundest = max(numbers, key=lambda k: silhouette_score(moons, tried[k]))
by_silhouette = clustering_accuracy(moon, tried[roundest])
by_agreement = clustering_accuracy(moon, ANCMM(2, random_state=0).fit_predict(moons))
assert by_silhouette < by_agreement
print(
    f"moons:   accuracy {by_silhouette:.3f} by silhouette, {by_agreement:.3f} by auto"
)

# %%
# Data frames between the steps. ANCMM has nothing to put out as a frame, and keeps the
# names of the columns that it was given.

framed = make_pipeline(StandardScaler(), ANCMM(3, random_state=0))
framed.set_output(transform="pandas").fit(X)
assert list(framed[-1].feature_names_in_) == list(X.columns)
assert framed[:-1].transform(X).columns.equals(X.columns)

# %%
# Two kinds of columns side by side: three principal components, and those of the scaled
# columns that vary most.

union = make_union(PCA(3, random_state=0), VarianceThreshold(0.035))
joined = make_pipeline(MinMaxScaler(), union, ANCMM(3, random_state=0))
joined.set_output(transform="pandas").fit(X)
names = list(joined[-1].feature_names_in_)
assert names[:3] == ["pca__pca0", "pca__pca1", "pca__pca2"]
assert 0 < len(names) - 3 < X.shape[1]
accuracy = clustering_accuracy(y, joined[-1].labels_)
print(f"union:   accuracy {accuracy:.3f} with {len(names)} columns")

# %%
# Neighbors from another step. ``KNeighborsTransformer`` makes a sparse table of
# distances, any tool that does so can stand in its place. The result is that of ANCMM
# on the points. The table needs one neighbor more than ``n_neighbors`` counts; the
# transformer's does, because it adds the point itself.

Z = StandardScaler().fit_transform(X)
table = make_pipeline(
    StandardScaler(),
    KNeighborsTransformer(n_neighbors=15, mode="distance"),
    ANCMM(3, n_neighbors=15, metric="precomputed", random_state=0),
)
direct = ANCMM(3, n_neighbors=15, random_state=0).fit(Z)
assert (table.fit_predict(X) == direct.labels_).all()
assert abs(table[-1].affinity_matrix_ - direct.affinity_matrix_).max() < 1e-9
assert (table.predict(X) == direct.labels_).all()
print(f"table:   accuracy {clustering_accuracy(y, direct.labels_):.3f}")

# %%
# The picture: the graph of the first pipeline in its own space, and the search.

figure, (left, right_ax) = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
plot.graph(pipeline[-1], pipeline[:-1].transform(X), ax=left, layout="pca")
right_ax.plot(numbers, scores, "o-", label="silhouette, no labels")
right_ax.plot(numbers, right, "s--", label="accuracy, with labels")
right_ax.axvline(best, color="0.7", lw=6, alpha=0.5, zorder=0)
right_ax.set(
    xlabel="number of neighbors", ylim=(0, 1.02), title="The search; gray: its choice"
)
right_ax.legend(loc="center right")
plt.show()
