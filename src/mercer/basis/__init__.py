"""`basis`: sequential Bayesian kernel regression (Vermaak, Godsill and Doucet)."""
