"""What new candidates, and retired ones, do to particles."""
