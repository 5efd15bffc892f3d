"""A stand-in for mercer's regressors: Bayesian ridge regression with exact draws."""
