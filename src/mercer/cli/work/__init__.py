"""What the commands do between reading and writing: one step a file."""
