"""From standardised inputs and classes to the draws of a classifier of several classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.gp.fitting import FittedGP, GPSettings, fit_posterior, monitored_rows
from mercer.gp.several.compilation import compile_loops
from mercer.gp.several.model import SoftmaxPosterior, SoftmaxRecorder
from mercer.gp.several.naming import class_labels, class_parameters
from mercer.sampling.driver import Labels, RunOptions
from mercer.sampling.progress import tell
from mercer.sampling.target import Point

__all__ = ["fit_several"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class _Recorder:
    """What a draw keeps: log parameters by name instead of theta."""

    recorder: SoftmaxRecorder

    def __call__(self, point: Point) -> Mapping[str, Array]:
        model = self.recorder.model
        recorded = dict(self.recorder(point))
        theta = recorded.pop("theta")
        return {**class_parameters(model.kernel, model.X.shape[1], theta), **recorded}


def fit_several(
    X: Array,
    codes: NDArray[np.int64],
    settings: GPSettings,
    options: RunOptions,
    names: tuple[str, ...],
    classes: tuple[str, ...],
    *,
    is_shared: bool,
) -> FittedGP:
    """Draw hyperparameters for standardised inputs (n, d) and classes (n,), 0 to C - 1."""
    compile_loops(lambda line: tell(line, options.progress))
    n, d = X.shape
    kernel = settings.make_kernel()
    model = SoftmaxPosterior(
        X, codes, len(classes), kernel, settings.prior_of(d), is_shared=is_shared
    )
    recorder = _Recorder(SoftmaxRecorder(model, monitored_rows(options, n)))
    monitored = (*(parameter.name for parameter in kernel.parameters()), "latent")
    labels = Labels(class_labels(kernel, names, classes, is_shared=is_shared), monitored)
    return fit_posterior(model, recorder, settings, options, labels)
