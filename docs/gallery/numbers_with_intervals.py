"""Numbers, with the interval they will fall into

A Gaussian process regression gives a band that nine of ten new observations should fall into. It
widens where there are no rows.
"""

# %%
# A wave with a gap in the middle.

import numpy as np

from mercer import GPRegressor

rng = np.random.default_rng(0)
x = np.concatenate([rng.uniform(0, 4, 30), rng.uniform(6, 10, 30)])
y = np.sin(x) + 0.2 * rng.normal(size=60)
model = GPRegressor(kernel="rbf", random_state=0).fit(x[:, np.newaxis], y)
lower, upper = model.predict_interval([[2.0], [5.0]], level=0.9)
print("at 2: ", lower[0].round(2), "to", upper[0].round(2))
print("at 5: ", lower[1].round(2), "to", upper[1].round(2))

# %%
ax = model.plot.predicted_band(x, y)
