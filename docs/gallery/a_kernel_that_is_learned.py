"""A kernel that is learned from the rows

BaNK learns the spectrum of its kernel: where the function comes back after four units, so does the
kernel, and predictions go on beyond the rows.
"""

# %%
# A wave with noise of a third of its height. So short a run is for a first look: the diagnostics
# say what it lacks, here instead of a warning.

import warnings

import numpy as np

from mercer import BaNKRegressor, ConvergenceWarning

warnings.simplefilter("ignore", ConvergenceWarning)
x = np.random.default_rng(0).uniform(0.0, 24.0, (200, 1))
y = 3.0 * np.sin(np.pi / 2.0 * x[:, 0]) + np.random.default_rng(1).normal(size=200)
model = BaNKRegressor(n_frequencies=10, n_draws=500, random_state=0).fit(x, y)
print(model.diagnostics_.worst_warning)

# %%
# The kernel falls, and rises again at 4: the period.

fig = model.plot.learned_kernel()

# %%
# Predictions to 30, six beyond the last row.

ax = model.plot.predicted_band(np.append(x[:, 0], 30.0), np.append(y, np.nan))
