"""What the README prints is what the commands print."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"<!-- output of: (.+?) -->\n```console\n(.*?)```", re.DOTALL)


def printed(command: str) -> str:
    command, _, part = command.partition(", from usage to options")
    script, *arguments = command.split()
    done = subprocess.run(
        [sys.executable, script, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "100"},
    )
    assert done.returncode == 0, done.stderr
    text = done.stdout
    if part or command.endswith("--help"):
        text = text[text.index("options:") :]
    return f"$ uv run {command}\n{text}"


def blocks() -> list[tuple[str, str]]:
    return BLOCK.findall(README.read_text())


@pytest.mark.parametrize(("command", "shown"), blocks(), ids=[command for command, _ in blocks()])
def test_output_in_readme_is_current(command, shown):
    assert shown == printed(command), "stale: python tests/test_readme.py writes it anew"


def test_every_file_the_readme_names_exists():
    for name in re.findall(r"common/\w+\.py", README.read_text()):
        assert (ROOT / name).exists(), name


if __name__ == "__main__":
    fresh = BLOCK.sub(
        lambda m: f"<!-- output of: {m[1]} -->\n```console\n{printed(m[1])}```", README.read_text()
    )
    README.write_text(fresh)
