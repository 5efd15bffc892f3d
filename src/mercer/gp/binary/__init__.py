"""Two classes: one latent function, integrated out by Laplace's approximation."""
