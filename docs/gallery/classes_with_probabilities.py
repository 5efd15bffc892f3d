"""Classes, with probabilities that can be acted on

A Gaussian process says how probable each class is, and how sure it is of that: far from all rows it
knows nothing, and says one half.
"""

# %%
# Two half moons, with noise. The hyperparameters are not tuned but averaged over.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import GPClassifier

X, y = make_moons(80, noise=0.25, random_state=0)
model = GPClassifier(kernel="rbf", random_state=0).fit(X, y)
print(model.posterior_.size_words)

# %%
# The colour is the probability of the second class; beyond the rows it fades to one half.

x = np.linspace(-3, 4, 60)
grid = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2)
proba = model.predict_proba(grid)[:, 1].reshape(60, 60)
fig, ax = plt.subplots(figsize=(6.2, 4.2), layout="constrained")
shown = ax.pcolormesh(x, x, proba, cmap="RdBu", vmin=0, vmax=1)
ax.scatter(*X.T, c=y, cmap="RdBu", edgecolors="black")
fig.colorbar(shown, label="probability of the second class")

# %%
# Which input matters, with its uncertainty: the posterior of each input's weight.

ax = model.plot.relevance()
