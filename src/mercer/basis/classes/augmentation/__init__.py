"""One particle given Polya-Gamma variables: a regression with weights."""
