from __future__ import annotations

import numpy as np
import pytest

from mercer.gp.regressor import GPRegressor
from mercer.report import build_report, render
from mercer.report.gp import describe_numbers as describe
from mercer.report.gp import number_sections
from mercer.report.section import noise_words
from support.fake_regression import fake_regression
from support.process_fits import tiny
from support.spectral_fits import waves


@pytest.fixture(scope="module")
def model() -> GPRegressor:
    return tiny().fit(*waves())


def test_the_description_says_how_large_the_noise_is_and_what_the_file_holds(model) -> None:
    first, noise, file = describe(model)
    assert 0 < model.posterior_.n_total <= 20
    assert f"drew {model.posterior_.n_total} plausible settings" in first
    assert noise == noise_words(model)
    assert "contains all" in file
    assert "drawings" in file


def test_relevance_is_that_of_classifiers(model) -> None:
    (section,) = number_sections(model, None)
    assert section.key == "relevance"
    assert section.text[0].startswith("x0 has the largest weight")
    assert len(section.figures) == 1


def test_one_input_is_drawn() -> None:
    x = np.linspace(-1.0, 2.0, 30)[:, np.newaxis]
    (section,) = number_sections(tiny().fit(x, np.sin(x[:, 0])), None)
    assert len(section.figures) == 2
    assert "Band: 90 % interval" in section.figures[1].caption


def test_a_whole_report(model) -> None:
    page = render(build_report(model, evaluation=fake_regression(), provenance=None))
    assert "Gaussian process regression" in page
    assert "log_noise_variance" in page
    assert "Relevance of the inputs" in page
