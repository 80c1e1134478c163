"""Share the files of a run: into a bucket on Hugging Face, through trace-util.

Only these files are sent, under names that end in a part of their content's hash: no file that is
there is ever replaced, a link goes on showing what it showed, and what was sent before is not sent
again. Nothing is deleted: trace-util's own default would mirror, and delete what others have there.
"""

import contextlib
import hashlib
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .cli import UserError, note, shown
from .read.privacy import scan_file
from .show.words import private, size

BUCKET = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def require(bucket: str) -> None:
    """Raise UserError for what is better said before anything is recorded: a name that is none, no
    trace-util, no token."""
    if not BUCKET.fullmatch(bucket):
        raise UserError(
            f"--upload {bucket}: no bucket's name; write <user>/<bucket>, such as me/traces"
        )
    _upload_traces()
    from huggingface_hub import get_token

    if not get_token():
        raise UserError(
            f"--upload {bucket}: no Hugging Face token; log in with `uv run hf auth login`, or set "
            "HF_TOKEN"
        )


def upload(files: Sequence[Path], bucket: str, folder: str = "") -> list[str]:
    """Send the files and return the Perfetto link of each trace among them. `folder` is where they
    go in the bucket.

    What is sent is said first, on stderr. Raises UserError when a file holds what nobody means to
    publish, and for whatever goes wrong on the way.
    """
    upload_traces = _upload_traces()
    with tempfile.TemporaryDirectory(prefix="share-") as staging:
        names = [_stage(path, Path(staging), folder) for path in files]
        for path, name in zip(files, names, strict=True):
            # What goes, and not what may lie in its place by now.
            if found := scan_file(Path(staging, name), path.name):
                raise UserError(
                    f"nothing was sent: {shown(path)} holds {private(found)}; take that out, or "
                    "record with this project's scripts, which do not write it"
                )
        note(
            f"sending to huggingface.co/buckets/{bucket}, which is made, and public, if it is not "
            "there; nothing in it is replaced or deleted"
        )
        for name in names:
            note(f"  {name}, {size(Path(staging, name).stat().st_size)}")
        # huggingface_hub tells its progress on stdout, where --json has its object.
        with contextlib.redirect_stdout(sys.stderr), _explained(bucket):
            # No login: it would ask for a token, and there is one.
            links = upload_traces(bucket, staging, delete=False, do_login=False)
            there = {str(link.path): str(link.perfetto_url) for link in links}
    if missing := [name for name in names if name not in there]:
        raise UserError(f"sent, but {bucket} does not list {' '.join(missing)}; look there")
    return [there[name] for name in names if not name.endswith(".txt")]


def _upload_traces():
    # Here, for it takes half a second, and most runs share nothing.
    try:
        from trace_util import upload_traces
    except ImportError as error:
        if sys.version_info < (3, 12):
            command = " ".join(["uv run --python 3.12", Path(sys.argv[0]).name, "…"])
            raise UserError(
                "--upload goes through trace-util, which needs Python 3.12, and this is "
                f"{sys.version_info[0]}.{sys.version_info[1]}: {command}"
            ) from error
        raise UserError(
            f"--upload goes through trace-util: {error}; uv sync installs it"
        ) from error
    return upload_traces


def _stage(path: Path, staging: Path, folder: str) -> str:
    """Copy a file to where it is sent from. Returns its name in the bucket."""
    place = staging / _plain(folder)
    place.mkdir(parents=True, exist_ok=True)
    copy = place / "copy"
    try:
        shutil.copyfile(path, copy)
    except OSError as error:
        raise UserError(f"nothing was sent: {shown(path)}: {error.strerror}") from error
    with copy.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:8]
    stem, dot, ending = path.name.partition(".")
    target = place / _plain(f"{stem}-{digest}{dot}{ending}")
    copy.rename(target)
    return target.relative_to(staging).as_posix()


def _plain(name: str) -> str:
    """As it can stand in a link, and leads nowhere else."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", name).strip(".")


@contextlib.contextmanager
def _explained(bucket: str):
    # HTTPError is that of its HTTP library, whichever this version of it uses.
    from huggingface_hub.errors import (
        HfHubHTTPError,
        HTTPError,  # pyright: ignore[reportPrivateImportUsage]
    )

    try:
        yield
    except HfHubHTTPError as error:
        status = error.response.status_code
        why = {
            401: "the token is not valid; log in again with `uv run hf auth login`",
            403: "the token may not write there: it must be of this user or of a member of this "
            "organisation, with the right to write",
            404: "there is no such user or organisation",
        }.get(status, error.server_message or f"the server answers {status}")
        raise UserError(f"--upload {bucket}: {why}") from error
    except HTTPError as error:  # of the connection: no network, no name service, no answer
        raise UserError(
            f"--upload {bucket}: huggingface.co cannot be reached ({error}); the recording is "
            "kept, and --replay FILE --upload sends it later"
        ) from error
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        # Of an answer that is no bucket's: these libraries take what comes for what should.
        raise UserError(
            f"--upload {bucket}: the answer of the server is not understood "
            f"({type(error).__name__}); is it huggingface.co, and not a login page in between?"
        ) from error
    except (OSError, RuntimeError, ValueError) as error:
        raise UserError(f"--upload {bucket}: {str(error).split(chr(10))[0]}") from error
