"""Likelihoods of the targets given the latent values."""
