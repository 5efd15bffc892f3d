"""The loop of `mercer.basis.printed`."""
