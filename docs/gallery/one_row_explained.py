"""Why did it say so of this row?

What each input adds to one prediction (Shapley values), and how sure the model is of that.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from mercer import GPClassifier

data = load_breast_cancer(as_frame=True)
columns = ["mean radius", "mean texture", "mean smoothness", "mean concave points"]
X, y = data.data[columns][:150], data.target_names[data.target[:150]]
model = GPClassifier(kernel="rbf", random_state=0).fit(X, y)
explanation = model.explain(X[:1], background=X)
print(explanation.table(0))

# %%
# Bars hold 90 % of the posterior of a contribution.

mean, low, high = (part[0] for part in (
    explanation.contributions, explanation.lower, explanation.upper
))  # fmt: skip
fig, ax = plt.subplots(figsize=(6.2, 2.6), layout="constrained")
ax.barh(explanation.names, mean, xerr=[mean - low, high - mean], color="#2a78b0")
ax.set_xlabel(f"added to the probability of {explanation.output[0]}")
ax.axvline(0.0, color="black", linewidth=0.8)
