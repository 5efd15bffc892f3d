"""A stand-in for the regressor that learns row by row: a straight line, learned exactly."""
