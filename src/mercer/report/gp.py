"""The part of a report that is about Gaussian processes; what it says of classifiers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from mercer import plot
from mercer.data.files import listing
from mercer.posterior.draws import Table, are_drawn
from mercer.posterior.labels import Audit
from mercer.posterior.positive_laws import OF_LOGARITHMS, noise_of
from mercer.report.audit import errors_words, wrong_values
from mercer.report.section import (
    HOLDS_SUMMARIES,
    Figure,
    Section,
    count,
    curve_figures,
    from_table,
    noise_words,
    percent,
    svg,
)

TITLE: Final = "Gaussian process classifier"
GLOSSARY: Final = (
    "log_weight: logarithm of an input's weight. log_signal_variance: of how far the function may "
    "rise and fall, squared. Other names that begin with log_: further parameters of the kernel. "
    "log_density: of the posterior density, up to a constant. latent: the "
    "function at some of the training rows, its mean given the draw and thus less spread than the "
    "function; latent[0] is at the first of these rows, which need not be the first of the data."
)
HOLDS_ROWS: Final = (
    "A Gaussian process predicts from its training rows, so a saved model file contains all "
    "of them: share it as you would share the data."
)


def describe(estimator: Any) -> tuple[str, ...]:
    """Say in plain words what the model is, and what its file holds."""
    labels = estimator.classes_
    if len(labels) == 2:
        model = (
            "The model is a smooth unknown function of the inputs; its logistic transform is the "
            f"probability of “{labels[1]}”."
        )
    else:
        model = (
            f"The model is a smooth unknown function of the inputs for each of {len(labels)} "
            "classes; the softmax of their values gives the probabilities."
        )
    return (
        f"{model} {kernel_words(estimator)}How fast a function may change along each input, and "
        f"how far it may rise and fall, {_averaged(estimator)}",
        f"{HOLDS_ROWS} {HOLDS_SUMMARIES}",
    )


def kernel_words(estimator: Any) -> str:
    """Name the kernel, unless it is the usual one, or the kernels that the data chose."""
    weights = estimator.kernel_weights_
    if estimator.get_params()["kernel"] != "auto":
        (name,) = weights
        return "" if name == "rbf" else f"Its kernel is {name}. "
    of = [f"{name} ({percent(weight, 0)})" for name, weight in weights.items()]
    mixed = (
        ", and predictions average over these with these weights: not how probable each is, but "
        "the mixture that predicts best. "
    )
    return (
        "Which kernel it has was left to the data: by how well predictions of held-out rows fared "
        f"they chose {listing(of)}{mixed if len(of) > 1 else '. '}"
    )


def _averaged(estimator: Any) -> str:
    """Say how the hyperparameters were drawn, those of all kernels, and what that is for."""
    drawn = estimator.kernel_posteriors_.values()
    n_draws = count(sum(draws.n_total for draws in drawn))
    if all(draws.n_total == 1 for draws in drawn):
        return "is set to the most probable guess, so that what it leaves open is not counted."
    how = "Markov chain Monte Carlo drew {} plausible settings"
    if all(draws.is_weighted for draws in drawn):
        how = "importance sampling drew {} plausible settings and weighted them by how probable"
        how = f"{how} the data make each"
    said = how.format(n_draws)
    return f"is not fixed at one best guess: {said}, and every prediction is an average over them."


def sections(estimator: Any) -> tuple[Section, ...]:
    """Return the sections on the relevance of the inputs and on Laplace's approximation."""
    parts = relevance_sections(estimator)
    if estimator.integration == "exact":
        return (*parts, _laplace_section(estimator))
    return parts


def _laplace_section(estimator: Any) -> Section:
    """Say how far Laplace's probabilities are from the exact ones, at rows of the training data."""
    distance, in_region = estimator.training_distance()
    text = (
        "This model drew the function itself from its posterior. Laplace's approximation, the "
        "default, takes the posterior of the function for a normal distribution; it is "
        f"faster. At {count(distance.n_rows)} training rows the two probabilities differ by "
        f"{percent(distance.mean, 1)} on average, where the noise of the draws alone would show "
        f"{percent(distance.mean_noise, 1)}; the largest difference is "
        f"{percent(distance.largest, 1)}, with a standard error of "
        f"{percent(distance.largest_error, 1)}.",
        "Where this is less than you care about, fit without integration=exact.",
    )
    figure = Figure(
        svg(plot.laplace_distance, 3.6, in_region, distance.differences),
        "Difference of the two probabilities against the training rows within a length scale, a "
        "point a row. Line: medians of groups of rows. Both axes logarithmic.",
        "Differences between exact and Laplace's probabilities by rows per region.",
    )
    return Section("laplace", "How far off is Laplace's approximation?", text, figures=(figure,))


def relevance_sections(estimator: Any) -> tuple[Section, ...]:
    """Return the section on the relevance of the inputs, if the kernel weighs them."""
    if not hasattr(estimator, "relevance_"):
        return ()
    weights = np.asarray(estimator.relevance_, dtype=np.float64)
    names = tuple(estimator.feature_labels_)
    prior = estimator.prior_weight_interval_
    is_top = np.bincount(weights.argmax(axis=1), minlength=len(names)) / len(weights)
    is_drawn = are_drawn(weights)
    order = np.argsort(-np.median(weights, axis=0), kind="stable")
    order = order[is_drawn[order]]
    first = names[int(is_top.argmax())]
    is_standardised = estimator.get_params()["standardize"] is not False
    unit = "standard deviations of the input" if is_standardised else "units of the input"
    unit += " (of a warped one after the warp)" * bool(estimator.standardizer_.is_warped.any())
    scale = (
        "all inputs are on a common scale (standardised), so weights can be compared"
        if is_standardised
        else "inputs were not standardised, so weights depend on units and compare only within one"
    )
    text = [
        f"{first} has the largest weight in {percent(float(is_top.max()), 0)} of the draws. "
        f"The weight of an input says how fast functions of its kernel change along it; {scale}.",
        "A small weight means that they change slowly along that input: it matters little, "
        "or it acts in nearly a straight line. Weights do not say in which direction an input "
        "acts, nor that it is a cause.",
    ]
    if len(getattr(estimator, "classes_", ())) > 2 and not estimator.shared_kernel_:
        text.append("Each class has weights of its own; shown is their average over the classes.")
    if prior is not None:
        text.append(
            "The grey band is what the prior alone says. Where a bar is about as wide as the band, "
            "the data have said little about that input."
        )
    if not is_drawn.all():
        text.append(
            f"The weights of {count(int((~is_drawn).sum()))} other inputs were not drawn: they are "
            "so small that no prediction hangs on them. Which inputs decide was taken for known."
        )
    figure = Figure(
        svg(plot.relevance, 1.1 + 0.36 * min(len(order), 30), weights, names, prior_interval=prior),
        "Weight of each input (inverse squared lengthscale). Ring: median. Thick bar: half of the "
        "draws. Thin bar: 90 % of them.",
        f"Posterior weights of {len(order)} inputs; the largest median is that of "
        f"{names[order[0]]}, the smallest that of {names[order[-1]]}.",
    )
    low, median, high = np.quantile(weights, [0.05, 0.5, 0.95], axis=0)
    columns = ("input", "median weight", "5 %", "95 %", "median lengthscale")
    rows = tuple(
        (names[i], median[i], low[i], high[i], median[i] ** -0.5, 100 * is_top[i]) for i in order
    )
    table = from_table(
        f"The same in numbers. The lengthscale, in {unit}, is one over the square root of the "
        "weight.",
        Table((*columns, "largest in % of draws"), rows),
        decimals={"largest in % of draws": 0},
    )
    title = "Relevance of the inputs"
    return (Section("relevance", title, tuple(text), figures=(figure,), tables=(table,)),)


# The part of a report that is about Gaussian process regression.

TITLE_OF_NUMBERS: Final = "Gaussian process regression"
GLOSSARY_OF_NUMBERS: Final = (
    f"{GLOSSARY} log_noise_variance: logarithm of the noise's variance; the target is standardised."
)


_FIRST_WORDS: Final = ("The model is", "Targets are above 0, and their logarithm is")


def describe_numbers(estimator: Any) -> tuple[str, ...]:
    """Say in plain words what the model is, and what its file holds."""
    first = _FIRST_WORDS[noise_of(estimator) in OF_LOGARITHMS]
    return (
        f"{first} a smooth unknown function of the inputs, and noise around it. "
        f"{errors_words(estimator)}{kernel_words(estimator)}How fast the "
        "function may change along each input, how far it may rise and fall, and how large the "
        f"noise is, {_averaged(estimator)}",
        noise_words(estimator),
        f"{HOLDS_ROWS} {HOLDS_SUMMARIES}",
    )


def number_sections(estimator: Any, audit: Audit | None) -> tuple[Section, ...]:
    """Return the sections on wrong values, where there may be some, relevance, and the curve.

    Without ``audit`` the list is that of 10 % expected false ones.
    """
    return (*wrong_values(estimator, audit), *_inputs_sections(estimator))


def _inputs_sections(estimator: Any) -> tuple[Section, ...]:
    relevance, curves = relevance_sections(estimator), curve_figures(estimator)
    if relevance:
        first, *rest = relevance
        return replace(first, figures=(*first.figures, *curves)), *rest
    return (Section("curve", "The curve", (), figures=curves),) if curves else ()
