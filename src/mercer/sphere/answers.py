"""What a fitted cloud of classifiers answers: the prediction methods of the estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.errors import UsageError
from mercer.estimation.base import KernelEstimator
from mercer.estimation.options import check_count
from mercer.sphere.cloud import Cloud
from mercer.sphere.predict import finite_log_score, recorded_probability, votes
from mercer.sphere.query import choose_batch, short_list

__all__ = ["CloudClassifier"]

Array = NDArray[np.float64]


class CloudClassifier(ClassifierMixin, KernelEstimator):  # type: ignore[misc]
    """Base of `KernelGibbsClassifier`: all that needs the drawn classifiers only."""

    _cloud: Cloud

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Class of each row of X, shape (m,), in the type of the labels.

        With decision="vote" that of most classifiers, eq. (4), ties by `predict_proba`; with
        "bayes_point" that of their mean, eq. (5).
        """
        check_is_fitted(self)
        Z = self._checked(X)
        if self.decision == "bayes_point":
            values = self._cloud.bayes_point_values(Z)
            chosen = (values > 0.0).astype(int) if values.ndim == 1 else values.argmax(axis=0)
        else:
            chosen = np.argmax(self._votes(Z) + 0.5 * self._recorded(Z), axis=1)
        labels: NDArray[Any] = self.classes_[chosen]
        return labels

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities of the label as it would be recorded, noise included.

        Returns
        -------
        ndarray of shape (m, C)
            In the order of ``classes_``; never exactly 0 or 1.
        """
        check_is_fitted(self)
        return self._recorded(self._checked(X))

    def clean_proba(self, X: ArrayLike) -> Array:
        """Probabilities of the true class, shape (m, C): those of the draws, averaged."""
        check_is_fitted(self)
        return self._clean(self._checked(X))

    def decision_function(self, X: ArrayLike) -> Array:
        """What `predict` is ordered by.

        Returns
        -------
        ndarray of shape (m,) for two classes, (m, C) for more
            decision="vote": log odds (log probabilities) of `predict_proba`; "bayes_point": the
            value of the mean of the unit classifiers.
        """
        check_is_fitted(self)
        Z = self._checked(X)
        if self.decision == "bayes_point":
            return np.asarray(self._cloud.bayes_point_values(Z).T)
        p = self._recorded(Z)
        if len(self.classes_) == 2:
            return np.asarray(np.log(p[:, 1]) - np.log(p[:, 0]))
        return np.asarray(np.log(p))

    def margin_draws(self, X: ArrayLike) -> Array:
        """Latent values f of new rows for each drawn classifier: the committee.

        Returns
        -------
        ndarray of shape (n_draws in all, m), or (n_draws in all, C, m) for several classes
            Positive where the classifier chooses ``classes_[1]``. The part of f outside the span
            of the training rows, which no draw knows, is left out.
        """
        check_is_fitted(self)
        return self._cloud.latent(self._checked(X))[0]

    def vote_margin(self, X: ArrayLike) -> Array:
        """Share of votes of the winning class less that of the second, shape (m,), in [0, 1].

        Rows with a small margin are the ones to leave undecided, section 4.
        """
        check_is_fitted(self)
        counts = np.sort(self._votes(self._checked(X)), axis=1)
        return np.asarray((counts[:, -1] - counts[:, -2]) / self.posterior_.n_total)

    def information(self, X: ArrayLike) -> Array:
        """Bits that the recorded label of each row would say of the classifier, shape (m,)."""
        check_is_fitted(self)
        return self._information(self._checked(X))

    def query(self, X_pool: ArrayLike, n_queries: int = 1) -> NDArray[np.int64]:
        """Choose the rows to label next.

        Parameters
        ----------
        X_pool : array or frame of shape (m, d)
            Rows without labels.
        n_queries : int, default=1
            Up to m.

        Returns
        -------
        ndarray of shape (n_queries,), int64
            Positions in ``X_pool``, the most wanted first; no near duplicates of one another.
        """
        check_is_fitted(self)
        Z = self._checked(X_pool)
        check_count("n_queries", n_queries, 1)
        if n_queries > len(Z):
            raise UsageError(f"n_queries must be at most the {len(Z)} rows; got {n_queries}")
        information = self._information(Z)
        listed = short_list(information, n_queries, Z)
        means, _ = self._cloud.latent(Z[listed])
        latent = means if means.ndim == 2 else means.reshape(-1, means.shape[-1])
        outside = self._cloud.models[0].space.outside(Z[listed])
        return listed[choose_batch(information[listed], latent, outside, n_queries)]

    def sample_proba(self, X: ArrayLike, n_samples: int = 100) -> Array:
        """P(true class) under some of the drawn classifiers, evenly spaced: a committee.

        Returns
        -------
        ndarray of shape (n_samples, m, C)
        """
        check_is_fitted(self)
        check_count("n_samples", n_samples, 1)
        v = self._cloud.class_probability(self._checked(X))
        picked = np.linspace(0, len(v) - 1, n_samples).round().astype(int)
        return np.asarray(np.moveaxis(v[picked], 1, 2))

    def _checked(self, X: ArrayLike) -> Array:
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            checked = validate_data(self, X, dtype=np.float64, order="C", reset=False)
            return np.asarray(checked)
        return self._standardized(X)

    def _votes(self, Z: Array) -> NDArray[np.int64]:
        cloud = self._cloud
        return np.concatenate([votes(cloud.latent(Z[rows])[0]) for rows in cloud.blocks(len(Z))])

    def _information(self, Z: Array) -> Array:
        cloud = self._cloud
        return np.concatenate([cloud.information(Z[rows]) for rows in cloud.blocks(len(Z))])

    def _clean(self, Z: Array) -> Array:
        cloud = self._cloud
        blocks = [cloud.class_probability(Z[rows]).mean(axis=0) for rows in cloud.blocks(len(Z))]
        return np.concatenate(blocks, axis=1).T

    def _recorded(self, Z: Array) -> Array:
        cloud, blocks = self._cloud, []
        for rows in cloud.blocks(len(Z)):
            v = cloud.class_probability(Z[rows])
            p = recorded_probability(v, cloud.rates).mean(axis=0)
            blocks.append(finite_log_score(p, v, has_noise=cloud.has_noise))
        return np.concatenate(blocks, axis=1).T
