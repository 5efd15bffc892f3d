"""Several classes: a softmax of Gaussian processes, one for each class."""
