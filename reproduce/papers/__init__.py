"""One file for each table or figure that is reproduced."""
