"""The part of a report that is about kernel learning for classes."""

from __future__ import annotations

from typing import Any, Final

from mercer.report.section import Section, count
from mercer.report.spectral import kernel_section, spectrum_section, used_words
from mercer.spectral.prediction import input_scales

__all__ = ["GLOSSARY", "TITLE", "describe", "sections"]

TITLE: Final = "Classification with a learned kernel"
GLOSSARY: Final = (
    "log_likelihood: logarithm of the probability that a draw gives to the labels of the training "
    "rows. n_components: groups of frequencies. kernel[i]: the kernel at ten fixed differences of "
    "inputs, shorter and shorter. function[k,i]: log odds at twenty of the training rows; "
    "predictions are made of them, so these are what to look at where only predictions matter."
)


def describe(estimator: Any) -> tuple[str, ...]:
    """Say in plain words what the model is, and what its file holds."""
    n_draws = count(estimator.posterior_.n_total)
    shape = "a straight part plus a curve" if estimator.linear_part else "a curve"
    order = [str(label) for label in estimator.class_order_]
    if len(order) == 2:
        odds = f"The logarithm of the odds of “{order[0]}” is an unknown function of the inputs, "
    else:
        odds = (
            f"The {len(order)} classes are told apart one after the other, the most frequent "
            f"first: is it {order[0]}, else is it {order[1]}, and so on. The logarithm of the odds "
            "of each such question is an unknown function of the inputs, "
        )
    return (
        f"{odds}{shape}. How alike the curve is at two rows depends on how far apart they are in "
        "their inputs, and the kernel says how. It is not chosen but learned, as a mixture of "
        f"waves of any frequency. Markov chain Monte Carlo drew {n_draws} kernels and functions "
        "that are plausible given the data, and every probability is an average over "
        f"{used_words(estimator)}.",
        "A saved model file contains no training row. This report holds summaries; of held-out "
        "rows, where there are any, drawings.",
    )


def sections(estimator: Any) -> tuple[Section, ...]:
    """Return the sections on the kernel and on its spectrum."""
    scales = input_scales(estimator)
    if not scales.order:
        words = ("All inputs are constant: there is no kernel to learn.",)
        return (Section("kernel", "The kernel that was learned", words),)
    return kernel_section(estimator, scales), spectrum_section(estimator, scales)
