"""From an estimator's common arguments to a run of the driver."""

from __future__ import annotations

import difflib
import dis
import functools
import hashlib
import inspect
import json
import math
import numbers
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NoReturn, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from mercer.errors import ConvergenceWarning, UsageError
from mercer.posterior.container import mercer_version
from mercer.random import entropy_of
from mercer.sampling.checkpoint import RunIdentity, digest_arrays, open_run
from mercer.sampling.driver import RunOptions, SamplingStoppedError
from mercer.sampling.signals import StopRequestedError, StopSignals

# Checks of constructor arguments, made at ``fit``; messages name the parameter and its range.


def check_count(name: str, value: object, minimum: int) -> int:
    """Return a whole number of at least ``minimum``, or raise `UsageError`."""
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_whole or int(value) < minimum:  # type: ignore[call-overload]
        raise UsageError(f"{name} must be a whole number of at least {minimum}; got {value!r}")
    return int(value)  # type: ignore[call-overload, no-any-return]


def check_positive(name: str, value: object) -> float:
    """Return a finite number above zero, or raise `UsageError`."""
    is_real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_real or not (math.isfinite(float(value)) and float(value) > 0.0):  # type: ignore[arg-type]
        raise UsageError(f"{name} must be a number above 0; got {value!r}")
    return float(value)  # type: ignore[arg-type]


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Raise `UsageError` unless ``value`` is one of the choices."""
    # By kind, too: True is not 1, and arrays are not compared.
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    kind = int if is_whole else str if isinstance(value, str) else None
    is_known = any(value == c if type(c) is kind else value is c for c in choices)
    if not is_known:
        listed = ", ".join(repr(choice) for choice in choices)
        hint = nearest_hint(str(value), [str(choice) for choice in choices])
        raise UsageError(f"{name} must be one of {listed}; got {value!r}{hint}")


def nearest_hint(word: str, known: Sequence[str]) -> str:
    """Return "; did you mean 'x'?" for a misspelt word, or an empty string."""
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


# What the ``fit`` of this thread has in hand.
_IN_HAND: ContextVar[ExitStack | None] = ContextVar("in_hand", default=None)


Fit = TypeVar("Fit", bound=Callable[..., Any])


def whole(fit: Fit) -> Fit:
    """Decorate ``fit``: one that is refused, fails or is stopped leaves the estimator as it was.

    What an earlier fit has learned is there then, as scikit-learn's estimators have it. A fit whose
    warning of convergence a filter turns into an error is whole.
    """

    @functools.wraps(fit)
    def fit_or_restore(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except ConvergenceWarning:
            raise
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return cast(Fit, fit_or_restore)


_AFTER_FIT = """

Returns
-------
self
    Fitted.

Raises
------
ValueError
    If the data cannot be used, in the words of scikit-learn.
SamplingStoppedError
    After Ctrl-C or SIGTERM (a KeyboardInterrupt); a checkpoint, if any, is whole.
"""


def fitting() -> Callable[[Fit], Fit]:
    """Decorate ``fit``: it is `whole`, signals stop it where that is safe, a checkpoint is locked.

    Both until it returns or fails. What signals did before is done again then; in other threads
    than the main one they are left alone. One without ``sample_weight`` says who has it. What each
    returns and raises is added to its docstring.
    """

    def decorate(fit: Fit) -> Fit:
        has_weights = "sample_weight" in inspect.signature(fit).parameters
        fit = whole(fit)

        @functools.wraps(fit)
        def fit_safely(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not has_weights and kwargs.pop("sample_weight", None) is not None:
                raise UsageError(NO_WEIGHTS.format(type(self).__name__))
            try:
                with _in_hand():
                    return fit(self, *args, **kwargs)
            finally:
                self._table_of_rows = None  # it was of this fit, whatever became of it

        fit_safely.__doc__ = inspect.cleandoc(fit.__doc__ or "") + _AFTER_FIT
        return cast(Fit, fit_safely)

    return decorate


NO_WEIGHTS = (
    "{} takes no sample_weight; GPClassifier and GPRegressor do, and whole numbers are rows that "
    "are repeated: np.repeat(X, sample_weight, axis=0)"
)


@contextmanager
def _in_hand() -> Iterator[None]:
    """Let signals stop a fit where that is safe, and give up its lock in the end."""
    with ExitStack() as held:
        before = _IN_HAND.set(held)
        try:
            with StopSignals(manner="patient"):
                yield
        except SamplingStoppedError:
            raise
        except StopRequestedError as error:
            raise SamplingStoppedError(error.signal_number, None) from error
        finally:
            _IN_HAND.reset(before)


# Docstrings of estimators: what several have in common is described once, in their base.

_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.M)
_SHARED = ("Parameters", "Attributes", "Raises")


class AnyEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of all estimators, whose docstrings it completes.

    Arguments, attributes and errors that one does not describe itself are described as its bases
    do; arguments in the order of the signature, and only those that it has.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Complete the docstring."""
        super().__init_subclass__(**kwargs)
        if not cls.__doc__:  # there is none in Python -OO
            return
        sections = _sections(cls.__doc__)
        text = sections.pop("")
        fields = [*getattr(cls, "__dataclass_fields__", ()), *inspect.get_annotations(cls)]
        for title in _SHARED:
            entries = _entries(sections.pop(title, ""))
            for base in cls.__mro__[1:]:
                described = {name for names in entries for name in names}
                for names, entry in _entries(_sections(base.__doc__ or "").get(title, "")).items():
                    is_own = title != "Parameters" or names[0] in fields
                    if is_own and described.isdisjoint(names):
                        entries[names] = entry
            if title == "Parameters":
                place = {name: k for k, name in reversed([*enumerate(fields)])}
                entries = dict(sorted(entries.items(), key=lambda each: place.get(each[0][0], 0)))
            text += _titled(title, "\n".join(entries.values()) + "\n\n") if entries else ""
        text += "".join(_titled(title, body) for title, body in sections.items())
        cls.__doc__ = text.rstrip() + "\n"

    def _forget(self) -> None:
        """Drop an earlier fit, so that nothing of it is left beside a new one."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)


def _sections(docstring: str) -> dict[str, str]:
    """Cut a docstring at its titles; what is before the first has none."""
    head, *found = _SECTION.split(inspect.cleandoc(docstring) + "\n\n")
    return {"": head, **dict(zip(found[::2], found[1::2], strict=True))}


def _titled(title: str, body: str) -> str:
    return f"{title}\n{'-' * len(title)}\n{body}"


def _entries(section: str) -> dict[tuple[str, ...], str]:
    """Cut a section at its entries, by the names that they describe."""
    texts = (text.rstrip() for text in re.split(r"\n(?=\S)", section.strip("\n")) if text.strip())
    return {tuple(re.split(" *:|\n", text)[0].split(", ")): text for text in texts}


def check_common(estimator: Any) -> None:
    """Raise `UsageError` for the first argument out of its range of those that all have."""
    check_count("n_draws", estimator.n_draws, 1)
    check_count("n_warmup", estimator.n_warmup, 0)
    check_count("n_chains", estimator.n_chains, 1)
    check_count("thin", _thinning(estimator)[0], 1)
    if estimator.max_seconds is not None:
        check_positive("max_seconds", estimator.max_seconds)
    check_choice("progress", estimator.progress, ("auto", True, False))
    n_jobs, checkpoint = estimator.n_jobs, estimator._checkpoint
    if n_jobs is not None and (check_count("n_jobs", n_jobs, -(2**31)) == 0):
        raise UsageError("n_jobs must be None or a whole number other than 0; got 0")
    if not isinstance(checkpoint, (str, os.PathLike, type(None))):
        raise UsageError(f"checkpoint must be a path or None; got {checkpoint!r}")


def _thinning(estimator: Any) -> tuple[Any, int]:
    """One of how many steps is kept, and how many times as long chains may become."""
    is_auto = estimator._most_times > 1 and estimator.thin == "auto"
    return (1, estimator._most_times) if is_auto else (estimator.thin, 1)


def run_options(estimator: Any, data_digest: str, started: float) -> RunOptions:
    """Fix the entropy of a run, or take it from the checkpoint that the run continues.

    ``data_digest`` is `digest_arrays` of all training data; it and the estimator's `fingerprint`
    identify the checkpoint. ``max_seconds`` counts from ``started``, `time.monotonic` when ``fit``
    began.
    """
    entropy, run = entropy_of(estimator.random_state), None
    if estimator._checkpoint is not None:
        seed = None if estimator.random_state is None else str(entropy)
        options = {**fingerprint(estimator), "seed": seed}
        identity = RunIdentity(data_digest, options, mercer_version())
        run = open_run(Path(estimator._checkpoint), identity, entropy, _IN_HAND.get())
        entropy = run.entropy
    seconds, (thin, most_times) = estimator.max_seconds, _thinning(estimator)
    return RunOptions(
        n_draws=estimator.n_draws,
        n_warmup=estimator.n_warmup,
        n_chains=estimator.n_chains,
        thin=thin,
        most_times=most_times,
        entropy=entropy,
        n_jobs=estimator.n_jobs,
        progress=estimator.progress,
        deadline=None if seconds is None else started + seconds,
        run=run,
    )


# Arguments that say how a run is done, and not what its draws are.
_NOT_OF_DRAWS = ("random_state", "n_jobs", "progress", "checkpoint", "max_seconds")

# Classes of these packages are known by their name; of others the code counts, too.
_KNOWN = ("builtins", "mercer", "numpy", "scipy", "sklearn", "abc", "typing", "functools")


def fingerprint(estimator: Any) -> dict[str, Any]:
    """Say what the draws of an estimator depend on beside the data, as JSON can hold it.

    These are its class and its arguments, but for ``random_state``, which the run keeps, those that
    say how a run is done, and the estimator's own ``_after_draws``. Arrays count by their content,
    objects by their class and parameters, functions of a module by their name, their code and what
    that refers to.

    A `UsageError` where an argument could be another in the next process without anybody noticing:
    a lambda, a function inside another, an object that does not tell its parameters.
    """
    params = estimator.get_params(deep=False)
    left_out = {*_NOT_OF_DRAWS, *estimator._after_draws}
    identified = {}
    for name in sorted(params.keys() - left_out):
        value = _Identity(name).of(params[name])
        is_long = isinstance(value, (dict, list)) and len(json.dumps(value)) > _LONGEST_IDENTITY
        identified[name] = {"sha256": digest_json(value)} if is_long else value
    return {"estimator": _Identity("estimator").of_class(type(estimator)), "params": identified}


_LONGEST_IDENTITY = 200  # characters; of what is longer the digest is kept


def digest_json(value: Any) -> str:
    """Return the SHA-256 of a value that JSON can write."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


@dataclass
class _Identity:
    """What identifies the parts of one argument."""

    name: str
    _known: list[object] = field(default_factory=list)  # functions and classes, which are said once
    _above: list[object] = field(default_factory=list)  # objects that this one is part of

    def of(self, value: Any) -> Any:
        """Identify a value of any kind."""
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, np.generic) and value.dtype != object:
            return self.of(value.item())
        if isinstance(value, (float, complex, bytes, os.PathLike, np.dtype)):
            is_plain = isinstance(value, float) and math.isfinite(value)
            return value if is_plain else [type(value).__name__, str(value)]
        if isinstance(value, (list, tuple)):
            return [self.of(each) for each in value]
        if isinstance(value, (set, frozenset)):
            return ["set", *sorted((self.of(each) for each in value), key=json.dumps)]
        if isinstance(value, Mapping):
            pairs = ([self.of(key), self.of(each)] for key, each in value.items())
            return ["mapping", *sorted(pairs, key=json.dumps)]
        if isinstance(value, np.ndarray):
            return self._of_array(value)
        if isinstance(value, type):
            return self.of_class(value)
        if isinstance(value, Enum):
            return [self.of_class(type(value)), value.name]
        if callable(value) and not hasattr(value, "get_params"):
            return self._of_callable(value)
        return self._of_object(value)

    def of_class(self, kind: type) -> Any:
        """Identify a class: by its name, and by its code if it is the user's."""
        name = f"{kind.__module__}.{kind.__qualname__}"
        if kind.__module__.partition(".")[0] in _KNOWN:
            return name
        if "<locals>" in kind.__qualname__:
            self._refuse(f"an object of {kind.__qualname__}, a class inside a function")
        if any(kind is each for each in self._known):
            return name
        self._known.append(kind)
        code: dict[str, Any] = {}
        for key, member in vars(kind).items():
            inner = getattr(member, "__func__", getattr(member, "fget", member))
            if isinstance(inner, FunctionType):
                code[key] = self._of_code(inner.__code__)
            elif isinstance(member, (bool, int, float, str)) and not key.startswith("__"):
                code[key] = self.of(member)
        return [name, code, [self.of_class(base) for base in kind.__bases__]]

    def _of_array(self, value: NDArray[Any]) -> Any:
        if type(value) is not np.ndarray and not isinstance(value, np.memmap):
            self._refuse(f"an array of type {type(value).__name__}")
        if value.dtype.hasobject:
            return ["array", list(value.shape), self.of(value.ravel().tolist())]
        return ["array", digest_arrays(value)]

    def _of_callable(self, value: Any) -> Any:
        if isinstance(value, FunctionType):
            if value.__name__ == "<lambda>":
                self._refuse("a lambda")
            if "<locals>" in value.__qualname__:
                self._refuse(f"{value.__qualname__}, a function inside another")
            return self._of_function(value)
        if isinstance(value, functools.partial):
            return ["partial", self.of(value.func), self.of(value.args), self.of(value.keywords)]
        if isinstance(value, MethodType):
            return ["method", self.of(value.__self__), self._of_callable(value.__func__)]
        if isinstance(value, (BuiltinFunctionType, np.ufunc)):
            return ["builtin", getattr(value, "__module__", None), value.__name__]
        if isinstance(getattr(value, "py_func", None), FunctionType):  # compiled by Numba
            return ["compiled", self._of_callable(value.py_func)]
        return self._of_object(value)

    def _of_function(self, function: FunctionType) -> Any:
        """Identify a function by its name, its code, and what the code refers to."""
        name = f"{function.__module__}.{function.__qualname__}"
        if any(function is each for each in self._known):
            return name
        self._known.append(function)
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        return [
            name,
            self._of_code(function.__code__),
            [self.of(each) for each in (function.__defaults__, function.__kwdefaults__)],
            [self._of_reference(each) for each in cells],
            {
                key: self._of_reference(function.__globals__[key])
                for key in sorted(_global_names(function.__code__))
                if key in function.__globals__
            },
        ]

    def _of_code(self, code: CodeType) -> Any:
        constants = [
            self._of_code(each) if isinstance(each, CodeType) else self.of(each)
            for each in code.co_consts
            if each is not Ellipsis
        ]
        sha = hashlib.sha256(code.co_code).hexdigest()
        return [sha, constants, list(code.co_names), list(code.co_varnames)]

    def _of_reference(self, value: Any) -> Any:
        """Identify what a function refers to: a package is what it is."""
        if isinstance(value, ModuleType):
            return ["module", value.__name__]
        package = str(getattr(value, "__module__", "")).partition(".")[0]
        if package in _KNOWN and callable(value):
            return ["known", str(getattr(value, "__qualname__", type(value).__qualname__))]
        return self.of(value)

    def _of_object(self, value: Any) -> Any:
        """Identify an object by its class and its parameters."""
        if any(value is each for each in self._above):
            self._refuse(f"a {type(value).__name__} that contains itself")
        self._above.append(value)
        try:
            return [self.of_class(type(value)), self._parameters(value)]
        finally:
            self._above.pop()

    def _parameters(self, value: Any) -> Any:
        if isinstance(value, np.random.Generator):
            return self.of(value.bit_generator.state)
        if isinstance(value, np.random.RandomState):
            return self.of(value.get_state(legacy=False))
        if hasattr(value, "get_params"):
            return self.of(value.get_params(deep=False))
        if is_dataclass(value):
            return {f.name: self.of(getattr(value, f.name)) for f in fields(value)}
        if hasattr(value, "to_numpy"):  # a column of a frame
            return self.of(np.asarray(value.to_numpy()))
        self._refuse(f"a {type(value).__name__}, which does not tell its parameters")

    def _refuse(self, what: str) -> NoReturn:
        raise UsageError(
            f"{self.name} cannot be used with a checkpoint: it is or holds {what}, from which "
            "another one could not be told when the run is resumed; use a name, a kernel object or "
            "a function of a module, or no checkpoint"
        )


def _global_names(code: CodeType) -> set[str]:
    """Names that a function, and those inside it, look up in their module."""
    names = {
        str(each.argval) for each in dis.get_instructions(code) if each.opname == "LOAD_GLOBAL"
    }
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return names.union(*(_global_names(each) for each in inner))
