"""Gaussian processes: the function by Laplace or exactly, Monte Carlo over hyperparameters."""
