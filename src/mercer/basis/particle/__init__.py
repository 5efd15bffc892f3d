"""One particle: its factor and set changed in place, its variances drawn."""
