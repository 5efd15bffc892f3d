"""Classification: the same sets of centres, with a logistic likelihood."""
