from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import UsageError
from mercer.kernels.base import Isotropic, Kernel, Product, Sum
from mercer.kernels.linear import Constant, Linear, Polynomial
from mercer.kernels.names import LEAVES, MAX_LENGTH, read_kernel, write_kernel
from mercer.kernels.stationary import (
    MaternARD,
    Periodic,
    SpectralComponent,
    SpectralMixture,
    SquaredExponentialARD,
)

RBF = SquaredExponentialARD()


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("rbf + matern32*periodic", RBF + MaternARD(1.5) * Periodic()),
        ("isotropic(rbf) + constant", Isotropic(RBF) + Constant()),
        ("polynomial(3)", Polynomial(3)),
        ("spectral_mixture(4)", SpectralMixture(4)),
        ("spectral_mixture(2)*linear", Product((SpectralMixture(2), Linear()))),
        ("(rbf + linear)*constant", (RBF + Linear()) * Constant()),
        ("isotropic(spectral_mixture(1))", Isotropic(SpectralComponent())),
        ("rbf*(constant + linear*(constant + periodic))",
         RBF * (Constant() + Linear() * (Constant() + Periodic()))),
    ],
)  # fmt: skip
def test_read_and_written(text: str, kernel: Kernel) -> None:
    assert read_kernel(text) == kernel
    assert write_kernel(kernel) == text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("  rbf+ (linear+constant) ", "rbf + linear + constant"),
        ("(rbf*linear)*(constant)", "rbf*linear*constant"),
        ("polynomial(2)", "polynomial"),
        ("spectral_mixture(1) + spectral_mixture(2) + rbf", "spectral_mixture(3) + rbf"),
    ],
)
def test_written_in_one_way(text: str, written: str) -> None:
    assert write_kernel(read_kernel(text)) == written


_LEAF = st.one_of(
    st.sampled_from([*LEAVES.values(), SpectralComponent()]),
    st.integers(1, 20).map(Polynomial),
    st.sampled_from(
        [Isotropic(kernel) for kernel in [*LEAVES.values(), SpectralComponent()]
         if any(parameter.per_input for parameter in kernel.parameters())]
    ),
)  # fmt: skip


def _combined(children: st.SearchStrategy) -> st.SearchStrategy:
    several = st.lists(children, min_size=2, max_size=4)
    return st.tuples(st.sampled_from([Sum, Product]), several)


def _build(recipe: object) -> Kernel:
    if isinstance(recipe, tuple):
        return recipe[0](tuple(_build(part) for part in recipe[1]))
    assert isinstance(recipe, Kernel)
    return recipe


@settings(max_examples=200)
@given(st.recursive(_LEAF, _combined, max_leaves=10))
def test_any_kernel_leads_there_and_back(recipe: object) -> None:
    kernel = _build(recipe)
    text = write_kernel(kernel)
    assert len(text) <= MAX_LENGTH
    assert read_kernel(text) == kernel


def test_the_longest_name_fits() -> None:
    """Parentheses nest as deep as they can around the longest leaf."""
    kernel: Kernel = Isotropic(SpectralComponent())
    for i in range(39):
        leaf = Isotropic(SpectralComponent())
        kernel = leaf + kernel if i % 2 else leaf * kernel
    text = write_kernel(kernel)
    assert 1300 < len(text) <= MAX_LENGTH
    assert read_kernel(text) == kernel


@given(st.text(alphabet="rbflinea()+*-. 123,=[]'\"\\\n_:\x00", max_size=60))
def test_any_text_is_a_kernel_or_refused(text: str) -> None:
    try:
        kernel = read_kernel(text)
    except UsageError:
        return
    assert read_kernel(write_kernel(kernel)) == kernel


@pytest.mark.parametrize(
    "text",
    ["2*rbf", "rbf - linear", "rbf**2", "rbf/linear", "-rbf", "rbf()", "polynomial(2.0)",
     "polynomial(True)", "polynomial(-2)", "polynomial(degree=2)", "polynomial(2, 3)", "rbf(2)",
     "isotropic(3)", "isotropic(rbf, rbf)", "isotropic", "spectral_mixture", "rbf.gram", "rbf[-1]",
     "rbf[True]", "rbf[1.0]", "rbf[:3]", "rbf[0:4:2]", "rbf[x[0]]", "rbf[a + b]", "rbf[a=1]",
     "rbf[]",
     "__import__('os')", "lambda: rbf", "rbf if rbf else rbf", "'rbf'", "[rbf]", "rbf, linear",
     "rbf; linear", "rbf +", "(rbf", "x := rbf", "rbf\x00", "", "\ud800", "rbf rbf",
     "polynomial(*rbf)", "f'{rbf}'"],
)  # fmt: skip
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"no kernel .*there is: rbf, .*sums and products"):
        read_kernel(text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("RBF", "did you mean 'rbf'"),
        ("rbf + matern23", "'matern23' .did you mean 'matern"),
        ("isotrop(rbf)", "did you mean 'isotropic'"),
        ("spectral_mixtures(3)", "did you mean 'spectral_mixture'"),
        ("spectral_mixture", "spectral_mixture is called with one integer"),
        ("isotropic(3)", "isotropic is called with one kernel"),
    ],
)
def test_a_misspelt_name_is_told_the_nearest(text: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        read_kernel(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("rbf" + " + rbf" * 40, "at most 40 leaves; this one has 41"),
        (" + ".join(["spectral_mixture(10)"] * 5), "at most 40 leaves; this one has 50"),
        ("spectral_mixture(11)", "from 1 to 10 components"),
        ("spectral_mixture(99999999999999)", "from 1 to 10 components"),
        ("polynomial(21)", "from 1 to 20"),
        ("isotropic(linear)", "one weight per input"),
        ("isotropic(rbf + matern32)", "neither a sum nor a product"),
        ("rbf" + " " * 3998, "more than 4000 characters"),
        ("rbf" + "[0]" * 1000, "no kernel"),
        ("rbf" + ".a" * 1500, "no kernel"),
        ("-" * 3000 + "rbf", "no kernel"),
        ("rbf[0:99999999999]", "from 0 to 99999"),
        ("rbf[3:3]", "is not empty"),
        ("rbf[()]", "there must be one at least"),
        ("rbf[0, a, 0]", "the input 0 is chosen twice"),
        ("categorical[0:3, 2]", "the input 2 is chosen twice"),
        ("(rbf[0] + linear)[1]", "chosen already"),
    ],
)
def test_limits(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        read_kernel(text)


def test_neighbouring_components_only_are_one_mixture() -> None:
    kernel = Sum((SpectralComponent(), RBF, SpectralComponent(), SpectralComponent()))
    assert write_kernel(kernel) == "spectral_mixture(1) + rbf + spectral_mixture(2)"
    assert read_kernel(write_kernel(kernel)) == kernel


@pytest.mark.parametrize(
    ("text", "said"), [("rbf[a", "'[' was never closed"), ("rbf)", "unmatched")]
)
def test_a_bracket_that_is_missing_is_named(text: str, said: str) -> None:
    with pytest.raises(UsageError, match="no kernel") as caught:
        read_kernel(text)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "under"),
    [
        ("rbf + matren32*periodic", "matren32"),
        (" rbf[é1] + lineer", "lineer"),
        ("rbf[1.5] + linear", "1.5"),
        ("rbf * polynomial(2.5)", "polynomial(2.5)"),
        ("rbf[age + linear", "["),
    ],
)
def test_what_is_wrong_is_marked(text: str, under: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_kernel(text)
    _, shown, carets = str(caught.value).splitlines()
    assert shown.strip() == text.strip()
    marked = "".join(a for a, b in zip(shown, carets, strict=False) if b == "^")
    assert (marked, carets.count("^")) == (under, len(under))


@pytest.mark.parametrize("text", ["rbx", "rbf +\nlin", "rbf + rbx" + " " * 300 + "+ rbf", ""])
def test_what_is_wrong_as_a_whole_or_too_long_is_not_marked(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_kernel(text)
    assert "^" not in str(caught.value)


def test_an_operator_without_its_right_side_is_marked_at_the_end() -> None:
    with pytest.raises(UsageError, match=r"\n    rbf \+\n {4,}\^$"):
        read_kernel("rbf +")
