"""Draws and what is computed from them: summaries, diagnostics, scores, files."""
