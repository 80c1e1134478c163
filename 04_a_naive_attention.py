"""04_a · Naive attention: five lines, five kernels?"""

import torch

from common.cli import one_line_errors, parse
from common.lesson import Lesson, run
from common.workload import Options, Workload, causal_mask

LESSON = Lesson(
    script="04_a_naive_attention",
    title="naive attention",
    label="attn_fwd",
    guess="matmul mul mask softmax matmul",
    compiled_guess="matmul softmax matmul",
    stores_scores=True,
)


class Attention(torch.nn.Module):
    def __init__(self, work: Workload):
        super().__init__()
        self.scale = work.head_dim**-0.5
        self.mask = causal_mask(work.seq, work.device)

    def forward(self, q, k, v):
        scores = torch.matmul(q, k.transpose(-2, -1))
        scores = scores * self.scale
        scores = scores.masked_fill(self.mask, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return torch.matmul(weights, v)


if __name__ == "__main__":
    with one_line_errors():
        run(LESSON, Attention, parse(Options, __doc__, "uv run 04_a_naive_attention.py --seq 2048"))
