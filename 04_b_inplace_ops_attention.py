"""04_b · In-place attention: one character, and the copy is gone.

The five lines of 04_a, but for an underscore: `masked_fill_` writes into the scores it is given.
Guess again: which step goes, how much time goes with it, and does the peak of memory fall as well?
At the default shape the scores are 8 × 16 × 1024 × 1024 numbers of 2 bytes, 256 MiB:

    line                 reads        writes
    q @ kᵀ               q, k         scores
    scores × scale       scores       scores
    mask                 scores       scores
    softmax              scores       scores
    weights @ v          scores, v    output

Autograd may need what an in-place op overwrites. Here nothing is differentiated (`torch.no_grad`)
and nobody else holds the scores, so overwriting them is safe.
"""

import common  # noqa: F401 — first: Ctrl-C while torch is imported is no traceback

# isort: split
import torch

from common.compare import claims
from common.compare.claims import Claim, Expectation
from common.lesson import Lesson, Options, Subject, main
from common.record.workload import Workload, causal_mask

SUBJECT = Subject("in-place attention", label="attn_fwd", stores_scores=True)
GUESS = Expectation(
    guess="matmul mul mask softmax matmul",
    claims=(
        Claim("no copy is left", claims.has_no("copy"), False),
        Claim("the masking step takes fewer CPU ops than in 04_a", claims.fewer_mask_ops, False),
        Claim("a forward is five kernels", claims.count_of("kernel", 5)),
        Claim(
            "both matmuls use the Tensor Cores",
            claims.on_tensor_cores("matmul"),
            otherwise="FP32 leaves them unused, unless TF32 is allowed",
        ),
        Claim("the score matrix stands in memory", claims.score_matrix_in_memory),
        Claim(
            "mul, mask and softmax run at the memory's rate",
            claims.at_memory_rate("mul", "mask", "softmax"),
            otherwise="where one is far below, its bytes are not what bounds it: what it does for "
            "each number is",
        ),
        Claim(
            "the peak of memory is below that of 04_a",
            claims.peak_below_naive,
            otherwise="in both the last matmul finds scores, weights and output at once",
        ),
    ),
)
COMPILED_GUESS = Expectation(
    guess="matmul fused matmul",
    claims=(
        Claim("no copy is left, whichever way the mask is written", claims.has_no("copy")),
        Claim(
            "scale, mask and softmax are one kernel",
            claims.fused_together("mul", "mask", "softmax"),
        ),
        Claim("the score matrix still stands in memory", claims.score_matrix_in_memory),
    ),
)


class Attention(torch.nn.Module):
    def __init__(self, work: Workload):
        super().__init__()
        self.scale = work.head_dim**-0.5
        self.mask = causal_mask(work.seq, work.device)  # once: the step only uses it

    def forward(self, q, k, v):
        scores = torch.matmul(q, k.transpose(-2, -1))
        scores = torch.mul(scores, self.scale)
        scores = scores.masked_fill_(self.mask, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return torch.matmul(weights, v)


def lesson(options: Options) -> Lesson:
    return Lesson(SUBJECT, GUESS, COMPILED_GUESS, Attention)


if __name__ == "__main__":
    main(__file__, __doc__, Options, lesson, "--seq 2048 --compile")
