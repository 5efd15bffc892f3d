"""Several classes: classifiers by the largest of C functions, drawn under label noise."""
