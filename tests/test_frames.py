"""Whose code a Python frame is of."""

import pytest

from common.read.frames import is_module, is_own


@pytest.mark.parametrize(
    "name",
    [
        "train.py(66): train_step",
        "src/model.py(15): forward",
        "/home/me/project/model.py(3): <lambda>",
        "/tmp/ipykernel_71/12.py(1): <module>",
        "C:\\work\\model.py(3): forward",
        "torch_tricks.py(1): forward",
    ],
)
def test_own(name):
    assert is_own(name)


@pytest.mark.parametrize(
    "name",
    [
        "torch/nn/modules/linear.py(130): forward",
        "threading.py(973): _bootstrap",
        "asyncio/events.py(80): _run",
        "<frozen os>(680): __getitem__",
        "<built-in method append of list object at 0x7f2d8bd54c80>",
        "/opt/venv/lib/python3.12/site-packages/mylib/a.py(1): f",
        "/usr/lib/python3/dist-packages/other/a.py(1): f",
        "/usr/lib/python3.12/contextlib.py(1): inner",
        "nn.Module: Linear_3",
        "transformers/models/llama/modeling_llama.py(1): forward",
    ],
)
def test_not_own(name):
    assert not is_own(name)


def test_modules():
    assert is_module("nn.Module: GPT_0") and not is_module("model.py(1): forward")
