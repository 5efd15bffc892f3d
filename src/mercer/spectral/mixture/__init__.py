"""The Dirichlet-process mixture that frequencies are drawn from; it knows nothing of data rows."""
