"""Numbers that come one after the other

Sequential kernel regression predicts each row before it learns it, in one pass: its score is an
honest one, of rows that were new.
"""

# %%
import numpy as np

from mercer import SequentialKernelRegressor

rng = np.random.default_rng(0)
x = rng.uniform(-10.0, 10.0, (300, 1))
y = np.sinc(x[:, 0] / np.pi) + 0.1 * rng.normal(size=300)
model = SequentialKernelRegressor(random_state=0)
for begin in range(0, 300, 100):
    model.partial_fit(x[begin : begin + 100], y[begin : begin + 100])
    print(f"after {begin + 100} rows: {model.mean_log_predictive_:.2f} nats a row,", end=" ")
    print(f"{model.n_centres_:.1f} kernels, noise {model.noise_std_:.3f}")

# %%
# What was learned, and the kernels that it is a sum of.

ax = model.plot.predicted_band(x, y)
ax = model.plot.centres()
