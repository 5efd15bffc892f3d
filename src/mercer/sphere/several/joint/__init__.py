"""Moves of all classes together: trajectories with walls, and the elliptical slice."""
