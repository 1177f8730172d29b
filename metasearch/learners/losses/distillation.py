"""Losses of multi-stage distillation (Ding et al. 2022).

Notation used for tensor shapes: N pairs in a batch, D dimensions of an embedding.
"""

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

Contrast = Literal["none", "soft", "bool", "ce", "infonce"]


def match(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the squared error of outputs against targets of the same shape, a mean over texts and dimensions.

    The paper writes a squared norm, `D` times as much; its authors' code takes this mean. The difference is the weight
    against a contrastive term.
    """
    return F.mse_loss(outputs, targets)


def contrast(
    kind: Contrast, teacher: Tensor, source: Tensor, target: Tensor, same: Tensor, temperature: float
) -> Tensor:
    """Return the multilingual contrastive loss of a batch of translations (section 3.2, Table 5).

    Each source text is compared with the translations of all others, and the similarity is held to

    - `soft`: the teacher's, `1/N^2 sum_ij (cos(T(s_i), T(s_j)) - cos(S(s_i), S(t_j)))^2` (equation 5);
    - `bool`: 1 for translations of the same text and 0 for others, in place of the teacher's;
    - `ce`: the teacher's, by `-1/N sum_ij cos(T(s_i), T(s_j)) log softmax_j(cos(S(s_i), S(t_j)) / temperature)`. The
      paper prints no `1/N`; without it the term would grow with the batch;
    - `infonce`: not in the paper, and not between the student's own vectors: each translation is to find the teacher's
      vector of its source among those of the batch, `-1/N sum_i log softmax_j(cos(S(t_i), T(s_j)) / temperature)_i`
      (van den Oord et al. 2018, equation 4). Another pair with the same source is no wrong answer, and is left out.

    Args:
        kind: one of them.
        teacher: T(s), `(N, D)`.
        source: S(s), `(N, D)`.
        target: S(t), `(N, D)`.
        same: whether the sources of two pairs are the same text, `(N, N)`.
        temperature: of `ce` and `infonce`.
    """
    with torch.autocast(source.device.type, enabled=False):  # a product in bfloat16 has 8 bits of each cosine
        if kind == "infonce":
            logits = F.normalize(target, dim=-1) @ F.normalize(teacher, dim=-1).T / temperature
            own = torch.arange(len(logits), device=logits.device)
            others = same & ~torch.eye(len(logits), dtype=torch.bool, device=logits.device)
            return F.cross_entropy(logits.masked_fill(others, -torch.inf), own)
        cosines = F.normalize(source, dim=-1) @ F.normalize(target, dim=-1).T
        if kind == "bool":
            return F.mse_loss(cosines, same.to(cosines.dtype))
        unit = F.normalize(teacher, dim=-1)
        wanted = unit @ unit.T
        if kind == "soft":
            return F.mse_loss(cosines, wanted)
        return -(wanted * torch.log_softmax(cosines / temperature, dim=1)).sum(1).mean()
