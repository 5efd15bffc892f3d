"""What the estimators share: options, standardisation, the run of the sampler, model files."""
