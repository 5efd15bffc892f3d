"""Linear algebra and quadrature that more than one method needs."""
