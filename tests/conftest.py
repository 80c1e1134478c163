"""Before any test is imported."""

import os
from functools import partial

import pytest
import torch

from common.cli import one_line_errors, parse

os.environ["LC_ALL"] = "C.UTF-8"  # reports follow the reader's locale
if not torch.cuda.is_available():
    # Triton decides when it is first imported, and several modules under test import it.
    os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.fixture
def asked(capsys):
    """A command line without the start of a process: (exit code, stdout, stderr)."""

    def run(command, options, *arguments):
        code = 0
        try:
            with one_line_errors():
                command(parse(options, "What it does.", "an example", list(map(str, arguments))))
        except SystemExit as stop:
            code = stop.code
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def ask(asked):
    """The command of experiments; tests of another one have an `ask` of their own."""
    from common import experiment

    return partial(asked, experiment.experiment, experiment.Options)
