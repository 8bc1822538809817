"""In scikit-learn's pipelines: searches, frames, unions, clones, metadata."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_blobs
from sklearn.decomposition import PCA
from sklearn.feature_selection import VarianceThreshold
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsTransformer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler

from bistochastic import ANCMM, PCAN, DoublyStochasticScaler

X, Y = make_blobs(150, 5, centers=3, cluster_std=1.5, random_state=0)
EVERY = [(np.arange(150), np.arange(150))]


def shape_score(model, X, y=None):
    """Score clusters without labels."""
    return silhouette_score(model[:-1].transform(X), model[-1].labels_)


def test_a_search_over_parameters_with_a_score_that_needs_no_labels():
    pipeline = make_pipeline(StandardScaler(), ANCMM(3))
    grid = {"ancmm__n_clusters": [2, 3, 5], "ancmm__n_neighbors": [8, 15]}
    search = GridSearchCV(pipeline, grid, scoring=shape_score, cv=EVERY).fit(X)
    assert search.best_params_["ancmm__n_clusters"] == 3
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    for params, score in zip(search.cv_results_["params"], scores, strict=True):
        model = clone(pipeline).set_params(**params).fit(X)
        assert score == pytest.approx(shape_score(model, X))
    assert adjusted_rand_score(Y, search.best_estimator_[-1].labels_) == 1.0


def test_pipelines_give_what_their_steps_give():
    pipeline = make_pipeline(StandardScaler(), PCA(2), ANCMM(3))
    labels = pipeline.fit_predict(X)
    Z = PCA(2).fit_transform(StandardScaler().fit_transform(X))
    np.testing.assert_array_equal(labels, ANCMM(3).fit_predict(Z))
    np.testing.assert_array_equal(pipeline.predict(X), labels)
    assert pipeline.predict_proba(X).shape == (150, 3)
    again = clone(pipeline)
    assert not hasattr(again[-1], "labels_")
    np.testing.assert_array_equal(again.fit_predict(X), labels)


def test_unions_of_features():
    union = FeatureUnion([("pca", PCA(2)), ("wide", VarianceThreshold(1.0))])
    labels = make_pipeline(union, ANCMM(3)).fit_predict(X)
    np.testing.assert_array_equal(labels, ANCMM(3).fit_predict(union.fit_transform(X)))


def test_frames_stay_frames():
    pandas = pytest.importorskip("pandas")
    frame = load_iris(as_frame=True).data
    pipeline = make_pipeline(StandardScaler(), PCAN(3)).set_output(transform="pandas")
    made = pipeline.fit_transform(frame)
    assert isinstance(made, pandas.DataFrame)
    assert made.index.equals(frame.index)
    assert list(made.columns) == list(pipeline.get_feature_names_out())
    scaled = make_pipeline(StandardScaler(), ANCMM(3)).set_output(transform="pandas")
    labels = scaled.fit(frame)[-1].labels_
    assert list(scaled[-1].feature_names_in_) == list(frame.columns)
    np.testing.assert_array_equal(scaled.predict(frame), labels)


def test_tables_of_neighbors_from_another_step():
    near = KNeighborsTransformer(n_neighbors=25, mode="distance")
    pipeline = make_pipeline(near, ANCMM(3, n_neighbors=15, metric="precomputed"))
    labels = pipeline.fit_predict(X)
    assert adjusted_rand_score(Y, labels) == 1.0


def test_kernels_that_are_scaled_before():
    from sklearn.metrics.pairwise import rbf_kernel

    pipeline = make_pipeline(DoublyStochasticScaler(), ANCMM(3, metric="affinity"))
    labels = pipeline.fit_predict(rbf_kernel(X, gamma=0.1))
    assert adjusted_rand_score(Y, labels) == 1.0


def test_no_metadata_is_taken_and_routing_says_so():
    from sklearn import config_context

    with config_context(enable_metadata_routing=True):
        routing = ANCMM(3).get_metadata_routing()
        assert not routing.consumes("fit", ["sample_weight"])
        with pytest.raises(TypeError, match="sample_weight"):
            make_pipeline(PCA(2), ANCMM(3)).fit(X, sample_weight=np.ones(150))
        weighted = StandardScaler().set_fit_request(sample_weight=True)
        pipeline = make_pipeline(weighted, ANCMM(3))
        pipeline.fit(X, sample_weight=np.ones(150))
        assert adjusted_rand_score(Y, pipeline[-1].labels_) == 1.0


def test_embeddings_before_other_clusterers():
    pipeline = make_pipeline(StandardScaler(), PCAN(3), KMeans(3, n_init=5))
    assert adjusted_rand_score(Y, pipeline.fit_predict(X)) > 0.95
