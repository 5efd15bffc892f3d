"""GP classification: Laplace's approximation inside, Monte Carlo over hyperparameters outside."""
