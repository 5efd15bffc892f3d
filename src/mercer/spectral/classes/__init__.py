"""BaNK for classes: a logistic likelihood, made normal by Polya-Gamma variables."""
