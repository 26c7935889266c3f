"""Reports of Nsight Systems: read through the export that `nsys` makes of them, once for each state of a report."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bubblescope.errors import InputError
from bubblescope.ingest.command import REPLACING, export_command
from bubblescope.ingest.folders import cache, passing
from bubblescope.ingest.sniff import UNFINISHED, Format, sniff
from bubblescope.model.trace import Finding, Severity

__all__ = ["Told", "exported"]

Told = tuple[Path, Format]
"""A file, and what it is."""

_LONGEST = 300  # characters of what nsys says
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_PROGRESS = re.compile(r"\d\s*%")


def exported(files: Sequence[Told]) -> tuple[list[Told], list[Finding]]:
    """The files, with exports in the place of reports, and what a reader must know of it.

    A report is left out where its export is among the files, since both would be one rank twice. One that cannot be
    exported here is left out where there is anything else to read, and stays where there is not.

    Raises:
        InputError: `nsys` fails on a report.
    """
    nsys = shutil.which("nsys")
    exports = {_stem(path) for path, found in files if found.kind == "nsys"}
    reports = {_stem(path) for path, found in files if found.kind == "nsys-rep" and not _unfinished(path)}
    enough = any(found.readable for _, found in files) or (nsys is not None and bool(reports))
    kept: list[Told] = []
    findings: list[Finding] = []
    for path, found in files:
        if found.kind != "nsys-rep":
            kept.append((path, found))
        elif _stem(path) in (exports | reports if _unfinished(path) else exports):
            findings.append(_skipped(path, "info", "what was made of it lies beside it"))
        elif nsys is not None and not _unfinished(path):
            kept.append(_export(path, nsys))
            findings.append(Finding("exported", "info", f"exported with nsys, and read from {kept[-1][0]}", str(path)))
        elif enough:
            findings.append(_skipped(path, "warning", f"it is {_unreadable(path, found).looks_like}. {found.hint}"))
        else:
            kept.append((path, _unreadable(path, found)))
    return kept, findings


def _stem(path: Path) -> Path:
    """What a report and its export have in common."""
    return path.parent.resolve() / path.stem


def _unfinished(path: Path) -> bool:
    return path.suffix.lower() == UNFINISHED


def _skipped(path: Path, severity: Severity, why: str) -> Finding:
    return Finding("skipped", severity, f"passed over, for {why}", str(path))


def _unreadable(path: Path, found: Format) -> Format:
    if _unfinished(path):
        return found
    return dataclasses.replace(found, looks_like=f"{found.looks_like}, and no nsys on the PATH that exports it")


def _export(report: Path, nsys: str) -> Told:
    """The export of a report: that of an earlier run, if the report has not changed since."""
    try:
        target = _place(report)
        if not _is_export(target):
            _write(nsys, report, target)
    except OSError as error:
        raise InputError(
            f"{report}: its export cannot be written: {error.strerror or error}",
            hint="XDG_CACHE_HOME names the folder for exports, TMPDIR the one for temporary files.",
        ) from error
    return target, sniff(target)


def _write(nsys: str, report: Path, target: Path) -> None:
    """Export under another name and rename, so that an interrupted export leaves nothing that looks whole."""
    draft = Path(tempfile.mkdtemp(prefix="part-", dir=target.parent))
    try:
        _run(nsys, report, draft / target.name)
        (draft / target.name).replace(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _is_export(path: Path) -> bool:
    return path.is_file() and sniff(path).kind == "nsys"


def _place(report: Path) -> Path:
    """Where the export of a report belongs; its name is the report's, as ranks are told from names.

    Exports of earlier states of the report are removed.
    """
    name = f"{report.stem}.sqlite"
    try:
        state = report.stat()
        key = _hash(os.fsencode(report.parent.resolve() / report.name))
        folder = cache() / "nsys" / f"{key}-{_hash(f'{state.st_size} {state.st_mtime_ns}'.encode())}"
        for older in folder.parent.glob(f"{key}-*"):
            if older != folder:
                shutil.rmtree(older, ignore_errors=True)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # reports hold the environment of the job
        if _is_export(folder / name) or os.access(folder, os.W_OK):
            return folder / name
    except (OSError, RuntimeError):
        pass  # no home, a full or a read-only disk: nothing is kept then
    return passing() / name


def _hash(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:16]


def _run(nsys: str, report: Path, output: Path) -> None:
    """Have `nsys` export a report; older versions, which know no JSON of payloads, are asked once more without."""
    said = ""
    for options in (("--include-json=true", REPLACING), (REPLACING,)):
        command = export_command(report.absolute(), output, options)
        try:
            done = subprocess.run(  # noqa: S603 - a list, through no shell; and the report is no option
                [nsys, *command[1:]], stdin=subprocess.DEVNULL, capture_output=True, errors="replace", check=False
            )
        except OSError as error:
            raise InputError(f"{nsys}: cannot be run: {error.strerror or error}", hint="Check the PATH.") from error
        if done.returncode == 0 and _is_export(output):
            return
        said = next(_told(done.stderr + "\n" + done.stdout), f"it ended with {done.returncode} and said nothing")
        if "include-json" not in done.stderr + done.stdout:
            break
    raise InputError(
        f"{report}: nsys could not export it: {said}", hint=f"To see what it says: {shlex.join(export_command(report))}"
    )


def _told(output: str) -> Iterator[str]:
    """The lines of what `nsys` says that tell anything, as plain text."""
    for line in _ESCAPES.sub("", output).splitlines():
        plain = "".join(character for character in line if character.isprintable()).strip()
        if plain and not _PROGRESS.search(plain):
            yield plain[:_LONGEST]
