"""Labels that nobody gave: ranges that PyTorch and its libraries put into a trace by themselves."""

import re

from .trace import PROFILER_STEP

_INCIDENTAL = re.compile(
    # data loaders, optimizers, communication, compiled graphs, modules, Python frames
    r"enumerate\(DataLoader\)|Optimizer\.(?:step|zero_grad|profile_hook)"
    r"|(?:nccl|gloo|mpi|ucc|xccl|hccl|c10d)\w*:|## |Torch-Compiled Region|nn\.Module:|<built-in"
    r"|[^()]*\.py\(\d+\): |DistributedDataParallel\.|FullyShardedDataParallel\."
    rf"|{re.escape(PROFILER_STEP)}"
)


def is_incidental(name: str) -> bool:
    return _INCIDENTAL.match(name) is not None
