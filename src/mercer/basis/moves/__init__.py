"""Moves of a particle that leave its target invariant."""
