"""One file for each scenario; its permanent id is its file name with dashes."""
