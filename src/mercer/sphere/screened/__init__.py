"""Samplers for many rows: trajectories meet only the rows near the boundary."""
