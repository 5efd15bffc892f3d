"""GP regression: the function integrated out exactly, Monte Carlo over the hyperparameters."""
