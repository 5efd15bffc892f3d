"""What any sampler needs: the interface, the one driver, warm-up, progress and checkpoints."""
