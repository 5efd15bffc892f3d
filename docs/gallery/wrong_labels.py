"""Which labels are wrong

The kernel Gibbs sampler draws boundaries that are plausible when some labels are wrong, nobody
knows which and how many. Each label gets the probability that it is.
"""

# %%
# Eight of 100 labels are turned round on purpose.

import numpy as np

from mercer import KernelGibbsClassifier

rng = np.random.default_rng(1)
X = rng.normal(size=(100, 2))
y = np.where(X[:, 0] + X[:, 1] ** 2 > 1.0, "yes", "no")
turned = rng.choice(100, 8, replace=False)
y[turned] = np.where(y[turned] == "yes", "no", "yes")

model = KernelGibbsClassifier(random_state=0).fit(X, y)
suspects = np.argsort(-model.label_error_proba_)[:8]
print(len(set(suspects) & set(turned)), "of the eight most suspicious labels are wrong")

# %%
# The list of which at most one in ten is expected to be right after all is shaded.

ax = model.plot.label_errors(fdr=0.1)

# %%
# Fifty of the boundaries that were drawn; the most suspicious rows are ringed.

ax = model.plot.boundaries(X, y, ringed=np.isin(np.arange(100), suspects))
