"""What `compare` compares: the models that fit the task, and the baselines."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from mercer.baselines.peers import PEERS
from mercer.cli.work.settings import always, make_estimator, parse_settings
from mercer.cli.work.table import TrainingTable
from mercer.data.wording import nearest, quoted
from mercer.errors import UsageError
from mercer.estimation.cross_validate import Contender, for_folds, maker_of
from mercer.models import MODELS, choose_model

__all__ = ["make_contenders"]


def make_contenders(
    table: TrainingTable,
    names: str | None,
    settings: Sequence[str],
    seed: int,
    tell: Callable[[str], None],
) -> list[Contender]:
    """Return the contenders that were asked for, or all that fit; the quick ones first.

    ``tell`` is told when a model has loops to compile.

    Raises
    ------
    UsageError
        If a name is unknown, or an argument of ``--set``.
    """
    arguments = parse_settings(settings)
    n_classes = len(table.classes)
    if table.task != "classification":
        choose_model("auto", table.task, n_classes)
    able = {
        entry.name: entry
        for entry in MODELS
        if entry.task == table.task and entry.max_classes >= n_classes
    }
    baselines = {peer.name: peer for peer in PEERS}
    chosen = _chosen(names, [*baselines, *(entry.name for entry in MODELS)])
    contenders = [
        Contender(peer.label, True, functools.partial(peer.make, seed))
        for name, peer in baselines.items()
        if name in chosen
    ]
    entries = {name: entry for name, entry in able.items() if name in chosen}
    classes = {name: entry.estimator_class() for name, entry in entries.items()}
    known = {argument for each in classes.values() for argument in each().get_params()}
    for name, estimator_class in classes.items():
        entries[name].compile_loops(tell)
        # What only another contender takes is not for this one; what none takes is an error.
        mine = estimator_class().get_params()
        taken = {k: v for k, v in arguments.items() if k in mine or k not in known}
        estimator = make_estimator(estimator_class, taken, always(seed))
        contenders.append(Contender(f"mercer {name}", False, maker_of(for_folds(estimator))))
    if names is not None:
        for name in chosen:
            if name not in able and name not in baselines:
                choose_model(name, table.task, n_classes)
    return contenders


def _chosen(names: str | None, known: list[str]) -> list[str]:
    if names is None:
        return known
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    for name in chosen:
        if name not in known:
            hint = nearest(name, known)
            raise UsageError(f"no model {quoted(name)}; there is: {', '.join(known)}{hint}")
    if not chosen:
        raise UsageError(f"--models names none; there is: {', '.join(known)}")
    return chosen
