"""Bayesian nonparametric kernel learning: random Fourier features of a mixture spectrum (BaNK)."""
