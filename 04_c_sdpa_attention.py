"""04_c · SDPA: one call, four backends."""

from contextlib import nullcontext
from dataclasses import dataclass

import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from common.cli import one_line_errors, option, parse
from common.lesson import Lesson, run
from common.workload import Options, Workload

BACKENDS = {
    "math": SDPBackend.MATH,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}


@dataclass(frozen=True)
class SdpaOptions(Options):
    backend: str = option("auto", "the backend; auto leaves it to torch",
                          choices=("auto", *BACKENDS))

    @property
    def variant(self):
        return self.backend


def attention(work: Workload):
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)


def main(options):
    pinned = nullcontext() if options.backend == "auto" else sdpa_kernel(BACKENDS[options.backend])
    with pinned:
        run(Lesson("04_c_sdpa_attention", "SDPA", "sdpa_fwd", "attention", "attention",
                   options.backend == "math"), attention, options)


if __name__ == "__main__":
    with one_line_errors():
        main(parse(SdpaOptions, __doc__, "uv run 04_c_sdpa_attention.py --backend flash"))
