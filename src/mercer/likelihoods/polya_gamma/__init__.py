"""Polya-Gamma draws: given them, a logistic likelihood is Gaussian in the latent values."""
