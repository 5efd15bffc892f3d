"""Particles and what a row, a new candidate and a retired one do to them."""
