"""The scikit-learn transformer: affinity in, doubly stochastic affinity out."""

import warnings
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import metadata_routing
from sklearn.utils.validation import (
    check_is_fitted,
    check_non_negative,
    validate_data,
)

from bistochastic.api import CURES, NORMALIZATIONS, marcus_mapping
from bistochastic.core.arrays import is_sparse
from bistochastic.core.errors import InputError, check_choice, listed, several
from bistochastic.core.parameters import check_limits
from bistochastic.core.quiet import quietly
from bistochastic.graph.simplex import simplex, simplex_of_entries

SIGNED = ("frobenius", "zass_shashua_2006")
FORMATS, NUMBERS = ("csr", "csc", "coo"), (np.float64, np.float32)


class DoublyStochasticScaler(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    r"""Make a matrix of affinities doubly stochastic, as a step of a pipeline.

    Parameters
    ----------
    normalization : str, default="marcus"
        Which doubly stochastic matrix:

        - "marcus": M(K) = DKD, Eq. (1), nearest in relative entropy; keeps every edge.
        - "zass_shashua_2005": the same by the degree iteration of Eq. (2), as
          published.
        - "frobenius": the nearest in the Frobenius norm; sets small entries to zero.
        - "zass_shashua_2006": the alternating projection published for that problem,
          which ends near the nearest matrix, not in it.
    tol : float, optional
        Largest error of a row sum; 1e-10, or 1e-5 in single precision.
    max_iter : int, optional
        Most iterates; by default a number that fits the method.
    unsupported : {"prune", "raise", "regularize"}, default="prune"
        What to do where no doubly stochastic matrix has the pattern of K, as in
        `marcus_mapping`. Isolated samples are thus left zero, with a warning. The last
        two have no "regularize", and "zass_shashua_2006" always raises.

    Attributes
    ----------
    scaling_ : array of shape (n_samples,)
        The diagonal u of D, of the first two.
    potential_ : array of shape (n_samples,)
        The potential a, of "frobenius".
    dropped_ : array of int
        Rows that pruning left zero.
    residual_ : float
        Largest error of a row sum of the fitted matrix.
    n_iter_ : int
        Number of iterates.
    n_features_in_ : int
        Number of samples seen in `fit`, each of them a column.
    feature_names_in_ : array of shape (n_samples,)
        Names of the columns, if they are all strings.

    See Also
    --------
    marcus_mapping : The same as a function, with more to say about the result.
    project_doubly_stochastic : The function behind the last two.

    Notes
    -----
    New rows, the affinities of new samples to those of `fit`, are scaled as the
    fitted ones are: by the columns' part of the scaling or potential, and by the
    number of their own that makes them sum to one. For the matrix of `fit`, if it has
    total support, that gives the fitted matrix, to within the tolerance.

    Examples
    --------
    >>> from sklearn.cluster import SpectralClustering
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.metrics.pairwise import rbf_kernel
    >>> from sklearn.pipeline import make_pipeline
    >>> from bistochastic import DoublyStochasticScaler
    >>> K = rbf_kernel(load_iris().data)
    >>> DoublyStochasticScaler().fit_transform(K).sum(axis=0).round(6).max()
    np.float64(1.0)
    >>> clusters = make_pipeline(
    ...     DoublyStochasticScaler(),
    ...     SpectralClustering(3, affinity="precomputed", random_state=0),
    ... ).fit_predict(K)
    >>> clusters.shape
    (150,)
    """

    __metadata_request__fit = {"K": metadata_routing.UNUSED}  # noqa: RUF012
    __metadata_request__transform = {"K": metadata_routing.UNUSED}  # noqa: RUF012

    def __init__(
        self,
        normalization: str = "marcus",
        *,
        tol: float | None = None,
        max_iter: int | None = None,
        unsupported: str = "prune",
    ) -> None:
        self.normalization = normalization
        self.tol = tol
        self.max_iter = max_iter
        self.unsupported = unsupported

    @quietly
    def fit(self, K: Any, y: Any = None) -> Any:
        """Find the scaling of a square matrix of affinities.

        Parameters
        ----------
        K : array-like or sparse matrix of shape (n_samples, n_samples)
            Symmetric affinities.
        y : None
            Ignored.

        Returns
        -------
        DoublyStochasticScaler
            The fitted transformer.

        Examples
        --------
        >>> import numpy as np
        >>> from bistochastic import DoublyStochasticScaler
        >>> K = np.array([[2.0, 1.0], [1.0, 3.0]])
        >>> DoublyStochasticScaler().fit(K).n_features_in_
        2
        """
        self._fit(K)
        return self

    @quietly
    def fit_transform(self, K: Any, y: Any = None) -> Any:
        """Make a square matrix of affinities doubly stochastic.

        Parameters
        ----------
        K : array-like or sparse matrix of shape (n_samples, n_samples)
            Symmetric affinities.
        y : None
            Ignored.

        Returns
        -------
        array or sparse matrix of shape (n_samples, n_samples)
            The doubly stochastic matrix; sparse if K is, in CSR unless K is CSC or COO.

        Examples
        --------
        >>> import numpy as np
        >>> from bistochastic import DoublyStochasticScaler
        >>> K = np.array([[2.0, 1.0], [1.0, 3.0]])
        >>> DoublyStochasticScaler().fit_transform(K).sum(axis=1).round(6)
        array([1., 1.])
        """
        return self._fit(K).matrix

    @quietly
    def transform(self, K: Any) -> Any:
        """Scale the affinities of samples, new or old, to the fitted ones.

        Parameters
        ----------
        K : array-like or sparse matrix of shape (n_new, n_samples)
            Affinities of `n_new` samples to those of `fit`.

        Returns
        -------
        array or sparse matrix of shape (n_new, n_samples)
            Rows that sum to one; zero, where pruning allows it, for samples without an
            affinity to those of `fit`.

        Examples
        --------
        >>> import numpy as np
        >>> from bistochastic import DoublyStochasticScaler
        >>> K = np.array([[2.0, 1.0], [1.0, 3.0]])
        >>> scaler = DoublyStochasticScaler().fit(K)
        >>> scaler.transform(np.array([[1.0, 1.0]])).sum(axis=1).round(6)  # a new row
        array([1.])
        """
        check_is_fitted(self, "residual_")
        K = self._validated(K, reset=False)
        if hasattr(self, "scaling_"):
            check_non_negative(K, type(self).__name__)
            return self._scaled(K)
        if hasattr(self, "potential_"):
            return self._clipped(K)
        raise InputError(
            'The alternation of "zass_shashua_2006" has no rule for new rows; use '
            'fit_transform, or normalization="frobenius", the problem it is meant for.'
        )

    def _fit(self, K: Any) -> Any:
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # so that a fit that fails leaves nothing half new
        self._check()
        K = self._validated(K, reset=True)
        function, method = NORMALIZATIONS[self.normalization]
        if function is marcus_mapping:
            check_non_negative(K, type(self).__name__)
        if K.shape[0] != K.shape[1]:
            raise InputError(
                f"K has shape {K.shape}; `fit` needs a square matrix of affinities, "
                "such as rbf_kernel(X)."
            )
        unsupported = self.unsupported
        if self.normalization in SIGNED and unsupported == "regularize":
            raise InputError(
                'unsupported="regularize" is for the Marcus mapping; '
                f'normalization={self.normalization!r} takes "prune" or "raise".'
            )
        if method == "alternating":
            unsupported = "raise"
        result = function(
            K,
            method=method,
            tol=self.tol,
            max_iter=self.max_iter,
            unsupported=unsupported,
        )
        if function is marcus_mapping:
            self.scaling_ = result.scaling
        elif method == "newton":
            self.potential_ = result.potential
        self.dropped_ = result.dropped
        self.residual_ = result.residual
        self.n_iter_ = result.n_iter
        pruned = function is marcus_mapping and result.support.kind == "partial"
        if self.unsupported == "prune" and (pruned or self.dropped_.size):
            _warn(result)
        return result

    def _check(self) -> None:
        """Look at each parameter on its own."""
        check_choice("normalization", self.normalization, NORMALIZATIONS)
        check_choice("unsupported", self.unsupported, CURES)
        check_limits(self.tol, self.max_iter)

    def _validated(self, K: Any, reset: bool) -> Any:
        if reset and hasattr(K, "columns") and not K.index.equals(K.columns):
            raise InputError(
                "The index and the columns of the data frame differ, but row i and "
                "column i of K must stand for the same sample. If they do, pass "
                "K.to_numpy()."
            )
        return validate_data(self, K, reset=reset, accept_sparse=FORMATS, dtype=NUMBERS)

    def _scaled(self, K: Any) -> Any:
        """Return u_i k_ij u_j with u_i for row sums of one."""
        u = self.scaling_.astype(np.float64)
        rows = csr_array(K, copy=True) if is_sparse(K) else K
        top = rows.max(axis=1)
        top = (top.toarray().ravel() if is_sparse(K) else top).astype(np.float64)
        top[top == 0] = 1.0  # with the rest near one no product leaves the range
        if is_sparse(K):
            made = rows.astype(np.float64)
            made.data /= np.repeat(top, np.diff(made.indptr))
            made = made @ diags_array(u)
        else:
            made = K / top[:, None] * u
        sums = made.sum(axis=1)
        self._check_alive(sums > 0)
        sums[sums == 0] = 1.0
        if is_sparse(K):
            return type(K)((diags_array(1 / sums) @ made).astype(K.dtype))
        made /= sums[:, None]
        return made.astype(K.dtype, copy=False)

    def _clipped(self, K: Any) -> Any:
        """Return the positive part of k_ij + a_i + a_j, row sums one by a_i."""
        if not is_sparse(K):  # every row has an entry for every fitted sample
            return simplex(K + self.potential_).astype(K.dtype, copy=False)
        held = csr_array(K, copy=True)
        held.sum_duplicates()
        entries = held.tocoo()
        rows, columns = entries.coords
        values = entries.data + self.potential_[columns]
        kept = values > -np.inf  # columns that were dropped
        rows, columns, values = rows[kept], columns[kept], values[kept]
        self._check_alive(np.bincount(rows, minlength=K.shape[0]) > 0)
        values = simplex_of_entries(rows, values, K.shape[0])
        made = csr_array((values, (rows, columns)), shape=K.shape, dtype=K.dtype)
        made.eliminate_zeros()
        return type(K)(made)

    def _check_alive(self, alive: Any) -> None:
        dead = np.flatnonzero(~alive)
        if dead.size and self.unsupported != "prune":
            raise InputError(
                f"{several(dead.size, 'row')} of K ({listed(dead)}) without an entry "
                'for a fitted sample. unsupported="prune" leaves such rows zero.'
            )

    @property
    def _n_features_out(self) -> Any:
        return self.n_features_in_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.normalization not in SIGNED
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _warn(result: Any) -> None:
    """Tell the caller of `fit` what was left out."""
    entries = several(result.support.unsupported[0].size, "entry", "entries")
    warnings.warn(
        f"With S for K: {result.support} Left zero: "
        f"{several(result.dropped.size, 'row')} and {entries}. "
        'unsupported="raise" makes this an error.',
        UserWarning,
        stacklevel=5,  # past the decorator
    )
