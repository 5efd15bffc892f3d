"""One model of several: Bayesian stacking."""
