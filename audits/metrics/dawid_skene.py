"""Labels of unequal annotators made into one label an item (Dawid & Skene 1979).

Written here because it is a page, and the library that has it brings a gigabyte along.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from audits.metrics.arrays import FloatArray, IntArray, floats
from audits.metrics.labels import MISSING, LabelTable

MAX_STEPS: Final = 200
TOLERANCE: Final = 1e-9
MIN_LABELS_PER_ITEM: Final = 3
MIN_LABELS_PER_ANNOTATOR: Final = 20
_TINY = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class Consensus:
    """``posterior`` [items, categories], ``labels`` [items], and what limits their meaning."""

    posterior: FloatArray
    labels: IntArray
    notes: tuple[str, ...]


def dawid_skene(table: LabelTable) -> Consensus:
    """Return the most likely label of each item, every annotator having errors of their own.

    Starts from shares of votes; EM until the mean change of the likelihood is below 1e-9. On
    small data the posteriors go to 0 and 1 whatever is true, which the notes then say.
    Unlabelled items have the label MISSING.
    """
    k = len(table.categories)
    said = floats(table.codes[:, :, None] == np.arange(k))  # [items, annotators, category]
    counts = floats(table.counts)
    labelled = counts.sum(axis=1) > 0
    posterior = np.where(
        labelled[:, None], counts / np.maximum(counts.sum(axis=1, keepdims=True), 1), 1 / max(k, 1)
    )
    before = -np.inf
    for _ in range(MAX_STEPS):
        prior = posterior[labelled].mean(axis=0) if labelled.any() else np.full(k, 1 / max(k, 1))
        errors = np.einsum("ij,iac->ajc", posterior, said) + _TINY  # [annotators, true, said]
        errors /= errors.sum(axis=2, keepdims=True)
        joint = np.log(prior + _TINY) + np.einsum("iac,ajc->ij", said, np.log(errors))
        top = joint.max(axis=1, keepdims=True, initial=-np.inf)
        evidence = top + np.log(np.exp(joint - top).sum(axis=1, keepdims=True))
        posterior = np.exp(joint - evidence)
        likelihood = float(evidence[labelled].mean()) if labelled.any() else 0.0
        if likelihood - before < TOLERANCE:
            break
        before = likelihood
    labels = np.where(labelled, posterior.argmax(axis=1) if k else MISSING, MISSING)
    return Consensus(floats(posterior), labels, _limits(table))


def _limits(table: LabelTable) -> tuple[str, ...]:
    notes = []
    per_item = table.counts.sum(axis=1)
    per_person = (table.codes != MISSING).sum(axis=0)
    if (per_item < MIN_LABELS_PER_ITEM).any():
        notes.append(f"some items have fewer than {MIN_LABELS_PER_ITEM} labels")
    if (per_person < MIN_LABELS_PER_ANNOTATOR).any():
        notes.append(f"some people gave fewer than {MIN_LABELS_PER_ANNOTATOR} labels")
    return tuple(notes)
