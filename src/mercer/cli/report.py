"""`mercer report`: the report of a saved model, with its stored scores or those of new rows."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

from mercer.cli.outputs import check_outputs
from mercer.cli.prediction import find_predictors, read_for, read_model_before, score_frame
from mercer.cli.saving import compare_step, next_steps, words_of
from mercer.cli.terminal import Session, score_words
from mercer.estimation.inspection import Inspection
from mercer.posterior.evaluation import AnyEvaluation


def run(model: Path, data: str | None, encoding: str | None, out: Path) -> None:
    """Do the work of `mercer report`: `mercer.cli.commands` has its options."""
    from mercer.report import build_report, render, write_report  # and Matplotlib

    check_outputs({"--out": out}, {"MODEL": model, "DATA": data}, html="--out")
    session = Session()
    saved = read_model_before(model, data)
    seen: list[tuple[AnyEvaluation | None, Inspection | None]] = [
        (None if one.table is None else one.table.evaluation, None) for one in saved.outputs
    ]
    if data is not None:
        frame, seen = read_for(saved, data, encoding=encoding), []
        for predictor, one in zip(find_predictors(saved), saved.outputs, strict=True):
            scores, notes, looked = score_frame(one, frame, f"the rows of {frame.source}")
            seen.append((scores, looked))
            for note in notes:
                session.note("note", predictor.about(note))
            said = f"{score_words(scores)}; held out if {data} was not fitted on"
            session.say("scores", predictor.about(said))
    elif (stored := seen[0][0]) is None:
        session.say("scores", "none are stored in the model; name DATA with the target to get some")
    else:
        session.say("scores", f"as stored in the model: {stored.how}")
    provenance = None if saved.table is None else saved.table.provenance
    typed = [] if provenance is None else shlex.split(provenance.command)[1:]
    names = [None if len(seen) == 1 else each.output for each in find_predictors(saved)]
    step = compare_step(typed if names[0] is None else words_of(typed, names[0]), data=data)
    for k, (its, look) in enumerate(seen):
        if look is not None:
            found = next_steps(
                typed, saved.outputs[k].estimator, its, look,
                data=data, model=str(model), target=names[k],
            )  # fmt: skip
            seen[k] = its, replace(look, steps=found)
    report = build_report(saved.estimator, provenance=provenance, next_step=step, outputs=seen)
    write_report(out, render(report))
    session.say("report", str(out))
