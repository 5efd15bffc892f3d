"""Kernel Gibbs sampler: classifiers drawn from their posterior under label noise."""
