"""What one row does to all particles."""
