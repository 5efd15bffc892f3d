"""What `compare` compares: the models that fit the task, and the baselines."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from mercer.baselines.by_task import peers_of
from mercer.cli.work.settings import always, make_estimator, parse_settings
from mercer.cli.work.table import TrainingTable
from mercer.data.wording import nearest, quoted
from mercer.errors import UsageError
from mercer.estimation.cross_validate import Contender, for_folds, maker_of
from mercer.estimation.tasks import Task
from mercer.models import able_models, choose_model, model_names

__all__ = ["make_contenders", "metric_for"]


def make_contenders(
    table: TrainingTable,
    names: str | None,
    settings: Sequence[str],
    seed: int,
    tell: Callable[[str], None],
) -> list[Contender]:
    """Return the contenders that were asked for, or all that fit; the quick ones first.

    ``tell`` is told when a model has loops to compile, and which baseline is left out.

    Raises
    ------
    UsageError
        If a name is unknown or not of this task, or an argument of ``--set``, or nothing is left.
    """
    arguments = parse_settings(settings)
    task, n_classes, n_rows = table.task.name, len(table.classes), len(table.labels)
    if not able_models(task, 0):
        choose_model("auto", task, n_classes, n_rows)
    able = {entry.name: entry for entry in able_models(task, n_classes)}
    peers = {peer.name: peer for peer in peers_of(task)}
    chosen = _chosen(names, [*peers, *model_names()])
    baselines = {name: peer for name, peer in peers.items() if name in chosen}
    for name, peer in list(baselines.items()):
        if peer.most_rows is not None and n_rows > peer.most_rows:
            tell(f"{peer.label} is left out: it is for {peer.most_rows} rows at most")
            del baselines[name]
    contenders = [
        Contender(peer.label, True, functools.partial(peer.make, seed))
        for peer in baselines.values()
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
            if name not in able and name not in peers:
                choose_model(name, task, n_classes, n_rows)
    if not contenders:
        raise UsageError("--models leaves nothing to compare")
    return contenders


def metric_for(task: Task, name: str | None) -> str:
    """Return the metric that was asked for, or the task's own.

    Raises
    ------
    UsageError
        If it is not one of the task.
    """
    if name is None:
        return task.default_metric
    known = [metric.name for metric in task.metrics if metric.has_winner or metric.is_pooled]
    if name not in known:
        raise UsageError(f"--metric {name} is not for {task.name}; there is: {', '.join(known)}")
    return name


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
