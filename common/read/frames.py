"""Names of Python frames and modules, as `with_stack` records them: whose code is it?

A frame is `model.py(19): forward`, a module's call `nn.Module: Linear_3`. The line is the first of
the function. Paths are cut where they begin with an entry of `sys.path`, so that a library in
site-packages is `torch/nn/functional.py`, and the standard library `threading.py`.
"""

import re
import sys
from functools import lru_cache

MODULE = "nn.Module: "
_FRAME = re.compile(r"(?P<file>.+\.py)\(\d+\): ")
_INSTALLED = re.compile(
    r"(?:^|[/\\])(?:(?:site|dist)-packages|lib[/\\]python\d[^/\\]*)[/\\]", re.IGNORECASE
)
# Whose top folder stands in site-packages, and in a frame without it.
LIBRARIES = frozenset(
    "accelerate aiter apex bitsandbytes colossalai cupy dask datasets deepspeed diffusers "
    "distributed einops fairscale fastai flash_attn flashinfer fsspec functorch huggingface_hub "
    "ignite ipykernel IPython ipywidgets jax jupyter_client jupyter_core keras kernels lightning "
    "lightning_fabric liger_kernel megatron mmcv mmengine monai msgspec numba numpy nvfuser optree "
    "optimum packaging pandas peft PIL pip pkg_resources pluggy pyarrow pydantic _pytest pytest "
    "pytorch_lightning ray requests rich safetensors scipy sentence_transformers setuptools "
    "sglang sklearn sympy tensorboard timm tokenizers torch torch_xla torchao torchaudio torchdata "
    "torchmetrics torchrec torchtitan torchtune torchvision tornado tqdm traitlets transformer_engine "  # noqa: E501
    "transformers triton trl typing_extensions urllib3 vllm wandb xformers zmq".split()
)


def is_module(name: str) -> bool:
    return name.startswith(MODULE)


@lru_cache(maxsize=65536)
def is_own(name: str) -> bool:
    """Whether a frame is of code that is neither installed nor of the standard library, as far as
    its path tells: of a library that is not listed here and not under site-packages it does not."""
    if not (match := _FRAME.match(name)):
        return False  # built-in functions, modules
    file = match["file"]
    if file.startswith("<") or _INSTALLED.search(file):
        return False
    first = re.split(r"[/\\]", file, maxsplit=1)[0].removesuffix(".py")
    return first not in LIBRARIES and first not in sys.stdlib_module_names
