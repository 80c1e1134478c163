"""04_b · In-place attention: one character, and the copy is gone.

The same five lines as 04_a, but for an underscore: `masked_fill_` writes into the scores it is
given. `diff 04_a_naive_attention.py 04_b_inplace_ops_attention.py` shows it.

Out of place is PyTorch's default for a reason: autograd may need the values that an in-place op
overwrites. Here nothing is differentiated (`torch.no_grad`) and nobody else holds the scores, so
overwriting them is safe.

Guess again before you look: which step goes, how much time goes with it, and does the peak of
memory fall as well? Count which score-sized tensors are alive at once, line by line.
"""

import torch

from common.cli import one_line_errors, parse
from common.compare import claims
from common.compare.rows import Claim
from common.lesson import Lesson, Options, run
from common.record.workload import Workload, causal_mask

GUESS = Lesson(
    title="in-place attention",
    label="attn_fwd",
    guess="matmul mul mask softmax matmul",
    claims=(
        Claim("no copy is left", claims.has_no("copy"), False),
        Claim(
            "the masking step takes fewer CPU ops than in 04_a",
            claims.fewer_ops_than(
                "04_a_naive_attention", "aten::masked_fill_", "aten::masked_fill"
            ),
            False,
        ),
        Claim("a forward is five kernels", claims.count_of("kernel", 5)),
        Claim(
            "both matmuls use the Tensor Cores",
            claims.on_tensor_cores("matmul"),
            otherwise="FP32 leaves them unused, unless TF32 is allowed",
        ),
        Claim(
            "the peak of memory is below that of 04_a",
            claims.peak_below("04_a_naive_attention"),
            otherwise="mul and softmax hold two score-sized tensors as well, input and result",
        ),
    ),
    stores_scores=True,
)
COMPILED_GUESS = Lesson(
    title="in-place attention",
    label="attn_fwd",
    guess="matmul fused matmul",
    claims=(
        Claim("no copy is left, as in the compiled 04_a", claims.has_no("copy")),
        Claim(
            "scale, mask and softmax are one kernel",
            claims.fused_together("mul", "mask", "softmax"),
        ),
    ),
    stores_scores=True,
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


if __name__ == "__main__":
    with one_line_errors():
        options = parse(Options, __doc__, "--seq 2048 --compile")
        run(__file__, GUESS, COMPILED_GUESS, Attention, options)
