"""The paper's step: a classifier moves along a great circle of the sphere."""
