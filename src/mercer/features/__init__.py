"""Finite feature maps: functions phi with k(x, x') near or equal to phi(x)'phi(x')."""
