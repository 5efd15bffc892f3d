"""Measured figures: every claim of speed, size or accuracy is a record made here."""
