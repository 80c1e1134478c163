"""What the code under test makes of a trace, for tests of what stands behind the reader."""

from pathlib import Path

from build import recording, trace, write

from common.read.observe import Observation, observe
from common.read.trace import read


def look(folder: Path, *events, name="trace.json", region=None, **more) -> Observation:
    """Of a trace with these events; `more` as `build.trace` takes it."""
    return observe(read(write(folder, trace(*events, **more), name)), region)


def recorded(*what) -> Observation:
    """Of a shipped recording, as `build.recording` takes it."""
    return observe(read(recording(*what)))
