"""Classes that come one after the other

The same for classes: each row gets a probability before its class is known, and is learned then.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from mercer import SequentialKernelClassifier

rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, (300, 2))
y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
model = SequentialKernelClassifier(n_particles=100, random_state=0)
model.partial_fit(X[:100], y[:100], classes=["other", "same"])
came = []
for begin in range(100, 300, 20):
    rows = slice(begin, begin + 20)
    came.append(np.mean(model.predict(X[rows]) != y[rows]))
    model.partial_fit(X[rows], y[rows])
print("errors of the rows as they came:", np.round(came, 2))

# %%
# The probability of "same", after 300 rows.

x = np.linspace(-1, 1, 40)
grid = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2)
fig, ax = plt.subplots(figsize=(5.4, 4.4), layout="constrained")
proba = model.predict_proba(grid)[:, 1].reshape(40, 40)
shown = ax.pcolormesh(x, x, proba, cmap="RdBu", vmin=0, vmax=1)
fig.colorbar(shown, label="probability of same")
