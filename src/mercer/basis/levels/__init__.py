"""Kernel rows at every length scale that particles may have."""
