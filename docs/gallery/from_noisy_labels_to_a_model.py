"""From a table with gaps and wrong labels to a model

End to end: a frame with text, dates and missing cells, of which some labels are wrong, becomes a
list of rows to check, a cleaned table, and a model that is judged on rows it has not seen.
"""

# %%
# A table as people have it. One label in twelve is wrong; `truth` is what nobody has.

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss

import mercer

rng = np.random.default_rng(0)
n = 260
glucose, smoker = rng.normal(6.0, 1.2, n), rng.choice(["yes", "no"], n)
score = 2.0 * (glucose - 6.0) + np.where(smoker == "yes", 0.8, -0.8)
truth = np.where(score + 0.3 * rng.normal(size=n) > 0, "ill", "well")
label = np.where(rng.random(n) < 1 / 12, np.where(truth == "ill", "well", "ill"), truth)
table = pd.DataFrame({
    "glucose": np.where(rng.random(n) < 0.05, np.nan, glucose),
    "smoker": smoker,
    "visit": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D"),
})  # fmt: skip
table.head(3)
train, test = table[:160], table[160:]

# %%
# What is text, a date or missing is encoded as the command line does it.

encode = mercer.TableEncoder(missing="indicator")
audit = mercer.KernelGibbsClassifier(encode=encode, n_draws=200, random_state=0)
audit.fit(train, label[:160])
ax = audit.plot.label_errors(fdr=0.2)

# %%
# A person looks at the most suspicious rows, and corrects those that are wrong.

checked = np.argsort(-audit.label_error_proba_)[:15]
cleaned = label[:160].copy()
cleaned[checked] = truth[checked]
print("wrong labels before:", (label[:160] != truth[:160]).sum())
print("after 15 looks:     ", (cleaned != truth[:160]).sum())

# %%
# The model of the cleaned table, judged on rows that it has not seen.

for name, y in (("as recorded", label[:160]), ("cleaned", cleaned)):
    model = mercer.GPClassifier(kernel="rbf", encode=encode, random_state=0).fit(train, y)
    proba = model.predict_proba(test)[:, list(model.classes_).index("ill")]
    print(f"{name}: log score {log_loss(truth[160:] == 'ill', proba):.3f}")

# %%
# Of the rows that got 70 %, about 70 % should be ill.

ax = model.plot.reliability(test, truth[160:])
