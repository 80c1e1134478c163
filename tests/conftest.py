"""Before any test is imported."""

import os

import torch

if not torch.cuda.is_available():
    # Triton decides when it is first imported, and several modules under test import it.
    os.environ.setdefault("TRITON_INTERPRET", "1")
