"""The command line of mercer in a process of its own, with the stand-in that learns row by row."""

from __future__ import annotations

from mercer import models
from mercer.cli.main import run
from support.line_model.estimator import ENTRY

if __name__ == "__main__":
    models.MODELS = (*(entry for entry in models.MODELS if entry.name != "basis"), ENTRY)
    run()
