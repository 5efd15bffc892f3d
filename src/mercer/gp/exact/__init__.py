"""The exact posterior of a binary GP classifier: Laplace proposes, an estimate decides."""
