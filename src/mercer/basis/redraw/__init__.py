"""The redraw of one centre among all candidates at once."""
