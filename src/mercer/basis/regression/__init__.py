"""Regression on one set of columns: factor, evidence, changes by one column or row."""
