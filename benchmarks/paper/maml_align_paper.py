"""The arms of the MAML-Align paper (M'hamdi et al. 2023): Tables 1, 7 and 8."""

ENCODER = "sentence-transformers/paraphrase-multilingual-mpnet-base-v2"
"""The paper calls it S-BERT."""
GAINS = {"fine-tune": -10.0, "maml": 0.1, "maml-align": 0.6}
"""Learner → mAP × 100 above zero-shot (57.0) on LAReQA in Table 1, means over five folds and seven languages."""
_MODES = ("mono-mono", "mono-bi", "mono-multi", "bi-multi", "mixt", "trans")
_MAML = tuple(("maml", mode) for mode in _MODES)
TABLE_7 = (*(("fine-tune", mode) for mode in _MODES), *_MAML, ("maml-align", "mono-bi-multi"))
"""Learner and mode of each row of Table 7, after zero-shot."""
MAIN_ARMS = {
    "lareqa": (("fine-tune", "mono-mono"), ("maml", "trans"), ("maml-align", "mono-bi-multi")),
    "stsb": (("fine-tune", "mono-bi"), ("maml", "mono-bi"), ("maml-align", "mono-bi-multi")),
}
"""Task → learner and mode of each row of Table 1, after zero-shot."""
ALL_ARMS = {
    # Every mode of MAML, and of fine-tuning Table 1's and that of the best MAML.
    "lareqa": (
        ("fine-tune", "mono-mono"),
        ("fine-tune", "trans"),
        *_MAML,
        ("maml-align", "mono-bi-multi"),
    ),
    "stsb": (
        ("fine-tune", "mono-bi"),
        ("fine-tune", "mono-mono"),
        ("maml", "mono-bi"),
        ("maml", "mono-mono"),
        ("maml-align", "mono-bi-multi"),
    ),
}
"""Task → rows of Table 1 and those that compare the modes."""
# The paper trains on the STS benchmark machine-translated (T-Train), and tests on STSB_Multi; these are tested on their
# own test part.
for _arms in (MAIN_ARMS, ALL_ARMS):
    _arms["stsb-mt"] = _arms["stsb"]
    _arms["stsb-mt-translated"] = (("fine-tune", "mono-mono"), ("maml", "mono-mono"), ("maml-align", "mono-bi-multi"))
# The embedded tasks, on which a study can be tried, have the arms of those that they imitate.
for _arms in (MAIN_ARMS, ALL_ARMS):
    _arms |= {"lareqa-sentences": _arms["lareqa"], "demo": _arms["lareqa"], "demo-sts": _arms["stsb"]}
