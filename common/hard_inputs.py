"""Inputs that a softmax with a fixed maximum could get wrong; run, a table of every kernel's error.

The kernels take a row's maximum from its diagonal tile. So here are rows whose later tiles score
ever higher, one key that takes all the weight, scores and values near what a number can hold.
"""

from functools import partial

import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from .record.workload import Attention

TILE = 64
NAMES = (
    "normal",
    *(f"q x {factor}" for factor in (2, 4, 8, 12, 20, 30, 100, 1000)),
    "each tile scores higher",
    "each tile scores far higher",
    "sink at key 0",
    "strong sink at key 0",
    "diagonal scores of -1e4",
    "one outlier",
    "one strong outlier",
    "all scores equal",
    "values at the limit",
    "values at the limit, sink",
    "small values",
)


def make(name: str, shape, dtype: torch.dtype, device: str) -> list[torch.Tensor]:
    """q, k, v of `shape` [batch, heads, seq, head_dim]: standard normal, changed as `name` says."""
    generator = torch.Generator(device).manual_seed(7)
    q, k, v = (torch.randn(shape, device=device, generator=generator) for _ in range(3))
    seq, head_dim = shape[2:]
    tile = torch.arange(seq, device=device) // TILE
    below = (tile[-1] - tile)[:, None].float()  # tiles from the last one down to the key's
    large, small = (1e37, 1e-36) if dtype == torch.bfloat16 else (1e4, 1e-3)
    if name.startswith("q x "):
        q *= float(name[4:])
    elif name == "each tile scores higher":
        q, k = 0.1 * q + 1, 0.1 * k + below * 24 / head_dim**0.5
    elif name == "each tile scores far higher":
        q, k = 0.1 * q + 4, 0.1 * k + below * 4
    elif name.endswith("sink at key 0"):
        q, k[:, :, 0] = q + 2, 60 if name.startswith("strong") else 4
    elif name == "diagonal scores of -1e4":
        half = head_dim // 2  # one dimension a tile: only keys of the same tile meet it
        own = F.one_hot(tile % half, half) * (1e4 * head_dim**0.5) ** 0.5
        q[..., :half], k[..., :half] = -own, own
    elif name.endswith("outlier"):
        q, k[:, :, seq // 3] = q + 1, 40 if "strong" in name else 6
    elif name == "all scores equal":
        q[:], k[:] = 0.5, 0.5
    elif name == "values at the limit":
        q, v = q * 12, v * large
    elif name == "values at the limit, sink":
        q, v, k[:, :, 0] = q + 2, v * large, 4
    elif name == "small values":
        v *= small
    return [x.to(dtype) for x in (q, k, v)]


def exact(q, k, v) -> torch.Tensor:
    """Causal attention in float64."""
    q, k, v = (x.double() for x in (q, k, v))
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    above = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    return torch.softmax(scores.masked_fill_(above, float("-inf")), -1) @ v


def error(output: torch.Tensor, expected: torch.Tensor) -> float:
    """‖output − expected‖ / ‖expected‖ over every element; NaN where one is not finite."""
    return float((output.double() - expected).norm() / expected.norm())


def sdpa(backend: SDPBackend, q, k, v) -> torch.Tensor:
    with sdpa_kernel(backend):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def main() -> None:
    from . import scripts
    from .kernels import hopper

    script = scripts.load("04_d_kernels_attention")
    kernels: dict[str, Attention] = {
        "flash": partial(sdpa, SDPBackend.FLASH_ATTENTION),
        "cudnn": partial(sdpa, SDPBackend.CUDNN_ATTENTION),
        "triton": partial(script.triton_attention, tiles=script.TILES[0]),
        "gluon": hopper.attention,
    }
    for dtype, head_dim in ((torch.bfloat16, 64), (torch.bfloat16, 128), (torch.float16, 64)):
        shape = (1, 2, 2048, head_dim)
        print(f"{dtype} {list(shape)}".removeprefix("torch."))
        print(f"{'':28}", *(f"{name:>8}" for name in kernels), "  gluon ÷ flash")
        for name in NAMES:
            q, k, v = make(name, shape, dtype, "cuda")
            expected = exact(q, k, v)
            errors = [error(kernel(q, k, v), expected) for kernel in kernels.values()]
            ratio = f"{errors[-1] / errors[0]:.2f}" if errors[0] else "-"
            print(f"{name:28}", *(f"{one:8.1e}" for one in errors), f"{ratio:>8}")
        print()


if __name__ == "__main__":
    main()
