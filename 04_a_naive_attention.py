"""04_a · Naive attention: five lines of PyTorch. What will the GPU do with them?

Attention straight from its definition, one PyTorch op a line. Before you run it, guess what the
GPU will do: how many pieces of work, in which order, and which is slowest? Count the bytes. At the
default shape the scores are 8 × 16 × 1024 × 1024 numbers of 2 bytes, 256 MiB:

    line                 reads        writes
    q @ kᵀ               q, k         scores
    scores × scale       scores       scores
    mask                 scores       scores
    softmax              scores       scores
    weights @ v          scores, v    output

Three lines move 512 MiB each. If bytes were all, they would cost about the same: where one takes
longer, something else bounds it. And does one of them do more than it says?
"""

import common  # noqa: F401 — first: Ctrl-C while torch is imported is no traceback

# isort: split
import torch

from common.compare import claims
from common.compare.claims import Claim, Expectation
from common.lesson import Lesson, Options, Subject, main
from common.record.workload import Workload, causal_mask

SUBJECT = Subject("naive attention", label="attn_fwd", stores_scores=True)
GUESS = Expectation(
    guess="matmul mul mask softmax matmul",
    reasons={
        "+copy": "masked_fill works out of place: it clones its input, then fills the clone. "
        "04_b changes that one line.",
    },
    claims=(
        Claim(
            "the copy comes from masked_fill", claims.comes_from("copy", "aten::masked_fill"), False
        ),
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
        scores = scores.masked_fill(self.mask, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return torch.matmul(weights, v)


def lesson(options: Options) -> Lesson:
    return Lesson(SUBJECT, GUESS, COMPILED_GUESS, Attention)


if __name__ == "__main__":
    main(__file__, __doc__, Options, lesson, "--seq 2048 --compile")
