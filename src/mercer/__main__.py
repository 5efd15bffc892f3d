"""`python -m mercer`: the command line."""

from __future__ import annotations

from mercer.cli import run

run()
