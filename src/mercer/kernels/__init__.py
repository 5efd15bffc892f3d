"""Covariance functions and their gradients."""
