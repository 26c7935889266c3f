"""Files in words: what each is and holds, what is wrong with it, what it lacks, and what they are as one job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby

from bubblescope.model.info import FileInfo, Info, JobInfo, LaneInfo, Need, RankInfo
from bubblescope.model.trace import Finding
from bubblescope.report import doubts, rank_findings
from bubblescope.report import wording as words
from bubblescope.report.facts import RECONSTRUCTION
from bubblescope.report.pages import Page
from bubblescope.report.table import Table

__all__ = ["page"]

_MOST = 24  # rows of a table; JSON and CSV have all
_ANSWERS = {
    "bubble": "analyze measures the bubble",
    "interval": "analyze tells between which bounds the bubble lies",
    "time": "analyze tells where the time went, but no bubble",
    "nothing": "analyze cannot tell anything of it",
}
_SOURCES = {
    "user": "as stated",
    "metadata": "its metadata",
    "environment": "the environment",
    "label": "a range",
    "filename": "its name",
    "order": "its place",
}
_UNTOLD = "nothing"

Shown = tuple[FileInfo, RankInfo]


def page(found: Info) -> Page:
    """The page of some files: the files, what they hold, what they lack, and at the end what the job is."""
    shown = [(file, rank) for file in found.files for rank in file.ranks]
    findings = tuple(_findings(found))
    tables = (
        _files([file for file in found.files if file.trace]),
        _others([file for file in found.files if not file.trace]),
        _events(shown),
        _steps(shown, frozenset(found.job.complete_steps)),
        _streams(shown),
        _groups(shown),
        _needs(found),
    )
    return Page(
        headline=_headline(found),
        warnings=(*_problems(found), *doubts.lines(findings)),
        remarks=doubts.remarks(findings),
        tables=tuple(table for table in tables if table.rows),
        notes=tuple(_job(found.job)),
        commands=(("Next", found.job.command),) if found.job.ranks and found.job.command else (),
    )


def _headline(found: Info) -> str:
    files, traces = found.files, [file for file in found.files if file.ranks]
    if not traces:
        none = "which" if len(files) == 1 else "none of which"
        verb = "cannot" if len(files) == 1 else "can"
        return f"{words.counted(len(files), 'file')}, {none} {verb} be read as a trace."
    numbers = [rank.rank for file in traces for rank in file.ranks]
    told = len(set(numbers) - {None})
    ranks = told + numbers.count(None)
    if ranks > told and found.job.world_size is not None:  # a rank that was recorded again and again has several traces
        ranks = min(ranks, max(told, len(found.job.ranks)))
    broken = sum(file.trace and not file.ranks for file in files)
    others = sum(not file.trace for file in files)
    parts = [f"{words.counted(len(traces), 'trace')} of {words.counted(ranks, 'rank')}"]
    parts += [f"{words.counted(broken, 'trace')} that cannot be read"] if broken else []
    parts += [f"{words.counted(others, 'file')} that {'is no trace' if others == 1 else 'are none'}"] if others else []
    return f"{words.enumerate_words(parts)}."


def _files(files: Sequence[FileInfo]) -> Table:
    folder, names = _short(files)
    return _table(
        "Files",
        f"{folder}gz: compressed; rank from: what tells it",
        [
            ("file", "l", names),
            ("is", "l", [_bare(file.looks_like) for file in files]),
            ("state", "l", [_state(file) for file in files]),
            ("size", "r", [words.size(file.bytes) + (" gz" if file.gzip else "") for file in files]),
            ("rank", "r", [_ranks(file.ranks) for file in files]),
            ("rank from", "l", [_sources(file.ranks) for file in files]),
            ("device", "l", [_devices(file.ranks) for file in files]),
        ],
        spare=("rank from", "device"),
    )


def _bare(text: str) -> str:
    """Without the article."""
    return text.removeprefix("a ").removeprefix("an ")


def _state(file: FileInfo) -> str:
    """Whether a trace is damaged; nothing where it is whole."""
    if file.problem is not None:
        return "unreadable"
    found = {finding.code: finding.severity for rank in file.ranks for finding in rank.findings}
    states = {
        "cut off": "truncated" in found,
        "damaged": found.get("repaired") not in {None, "info"},
        "mended": found.get("repaired") == "info",
    }
    return ", ".join(state for state, so in states.items() if so)


def _others(files: Sequence[FileInfo]) -> Table:
    """Files that are no trace; what to do is said once of those with whom the same is to be done."""
    folder, names = _short(files)
    first = {file.hint: name for file, name in reversed(list(zip(files, names, strict=True))) if file.hint}
    return _table(
        "No traces",
        f"{folder}not read by any command",
        [
            ("file", "l", names),
            ("looks like", "l", [_bare(file.looks_like) for file in files]),
            ("size", "r", [words.size(file.bytes) for file in files]),
            ("what to do", "l", [_advice(file, name, first) for file, name in zip(files, names, strict=True)]),
        ],
    )


def _advice(file: FileInfo, name: str, first: Mapping[str, str]) -> str:
    """What to do with a file, or for which one that has been said."""
    if file.hint is None:
        return ""
    return file.hint if first[file.hint] == name else f"as for {first[file.hint]}"


def _short(files: Sequence[FileInfo]) -> tuple[str, list[str]]:
    """Names without the folder that all are in, and `in FOLDER; `; nothing of that where there is none."""
    folders = {file.path.rpartition("/")[0] for file in files}
    if len(folders) > 1 or folders <= {""}:
        return "", [file.path for file in files]
    return f"in {folders.pop()}; ", [file.path.rpartition("/")[2] for file in files]


def _ranks(ranks: Sequence[RankInfo]) -> str:
    known = [rank.rank for rank in ranks if rank.rank is not None]
    return ", ".join(filter(None, (words.rank_list(known) if known else "", "?" if len(known) < len(ranks) else "")))


def _sources(ranks: Sequence[RankInfo]) -> str:
    return ", ".join(dict.fromkeys(_SOURCES[rank.rank_source or "order"] for rank in ranks))


def _devices(ranks: Sequence[RankInfo]) -> str:
    names = dict.fromkeys(name for rank in ranks for name in rank.devices)
    if names:
        return ", ".join(names)
    return "CPU" if ranks and not any(rank.counts.kernels for rank in ranks) else ""


def _events(shown: Sequence[Shown]) -> Table:
    counts = [rank.counts for _, rank in shown]
    kinds = ("operators", "launches", "kernels", "copies", "ranges", "frames", "collectives", "messages")
    return _table(
        "Events",
        "of the file, and those that are kept; span: from the first to the last",
        [
            ("rank", "l", [_ranks([rank]) for _, rank in shown]),
            ("file", "l", _named(shown)),
            ("span", "r", [words.duration(rank.span_ns) for _, rank in shown]),
            ("events", "r", [str(rank.events) for _, rank in shown]),
            *((name, "r", _numbers([getattr(count, name) for count in counts])) for name in kinds),
            ("threads", "r", _numbers([len(rank.threads) for _, rank in shown])),
        ],
        spare=("frames", "threads", "copies"),
    )


def _named(shown: Sequence[Shown]) -> list[str]:
    """The files of ranks that are not told, or that several files claim; nothing of others."""
    claims = Counter(rank.rank for _, rank in shown)
    return [file.path.rpartition("/")[2] if rank.rank is None or claims[rank.rank] > 1 else "" for file, rank in shown]


def _numbers(counts: Sequence[int]) -> list[str]:
    """Counts as text; nothing where all are 0."""
    return [str(count) for count in counts] if any(counts) else [""] * len(counts)


def _steps(shown: Sequence[Shown], whole: Collection[int]) -> Table:
    """The steps of all ranks; ranks that are alike in all of it share a row.

    What one rank takes for cut may be a training with an evaluation inside: those that are `whole` on all ranks are not
    cut, but where several files hold steps of one rank, which may have other numbers in the job.
    """
    alike: dict[tuple[str, ...], list[RankInfo]] = {}
    for name, (_, rank) in zip(_named(shown), shown, strict=True):
        steps = words.rank_list(step.step for step in rank.steps)
        evaluations = [step.step for step in rank.steps if step.kind == "evaluation"]
        cut = [step.step for step in rank.steps if step.complete is False and (name or step.step not in whole)]
        key = (name, steps, _marked(rank), _listed(evaluations), _listed(cut), _actions(rank), _told_by(rank))
        alike.setdefault(key, []).append(rank)
    heads = ("file", "steps", "marked", "evaluations", "cut", "actions", "told by")
    return _table(
        "Steps and actions",
        "marked: by the profiler or the framework; actions: forwards and backwards",
        [
            ("ranks", "l", [_ranks(same) for same in alike.values()]),
            *((head, "l", [key[place] for key in alike]) for place, head in enumerate(heads)),
        ],
    )


def _marked(rank: RankInfo) -> str:
    """Whether steps were marked, and were cut there."""
    narrow = any(finding.code == "narrow-marks" for finding in rank.findings)
    return "too often" if narrow else "yes" if rank.marked else "no"


def _listed(steps: Sequence[int]) -> str:
    """Steps by number; nothing where there are none."""
    return words.rank_list(steps) if steps else ""


def _actions(rank: RankInfo) -> str:
    return " ".join(f"{count}{kind}" for kind, count in rank.actions.counts.items()) or words.ABSENT


def _told_by(rank: RankInfo) -> str:
    """What told the actions, and the dialect where labels did; or the labels that were not enough."""
    told, dialect = rank.actions.told_by, rank.actions.dialect
    text = RECONSTRUCTION.get(told, told) if told else _UNTOLD
    if dialect is None:
        return text
    return f"{text} ({dialect})" if told == "labels" else f"{text}, beside labels ({dialect})"


def _streams(shown: Sequence[Shown]) -> Table:
    """The streams of all ranks; ranks whose streams are alike in what runs on them share their rows."""
    rows = [(tuple(map(_lane, r.lanes)), f, r) for f, r in shown]
    lines = []
    for kinds, same in groupby(sorted(rows, key=lambda row: row[0]), key=lambda row: row[0]):
        ranks = [rank for _, _, rank in same]
        for place, kind in enumerate(kinds):
            lanes = [rank.lanes[place] for rank in ranks]
            kernels = [lane.compute + lane.messages + lane.collectives + lane.copies for lane in lanes]
            busy = [lane.busy_ns for lane in lanes]
            known = [rank.rank for rank in ranks if rank.rank is not None]
            name = words.rank_list(known) if known else "?"
            lines.append((name, str(lanes[0].lane), kind, _range(kernels), words.duration(sum(busy) / len(busy))))
    columns = list(zip(*lines, strict=True)) or [()] * 5
    heads = (("ranks", "l"), ("stream", "r"), ("runs", "l"), ("kernels", "r"), ("busy", "r"))
    return _table(
        "Streams",
        "of the GPU, numbered in each file; busy: while anything ran, mean of the ranks",
        [(head, side, list(cells)) for (head, side), cells in zip(heads, columns, strict=True)],
    )


def _lane(lane: LaneInfo) -> str:
    counts = (
        ("compute", lane.compute),
        ("sends and receives", lane.messages),
        ("collectives", lane.collectives),
        ("copies", lane.copies),
    )
    return ", ".join(name for name, count in counts if count)


def _range(counts: Sequence[int]) -> str:
    least, most = min(counts), max(counts)
    return str(least) if least == most else f"{least} to {most}"


def _groups(shown: Sequence[Shown]) -> Table:
    """Each kind of communicator once, whatever the number of its kind."""
    kinds: dict[tuple[str, str | None], list[tuple[int, int]]] = {}
    for _, rank in shown:
        for group in rank.groups:
            kinds.setdefault((group.description, group.purpose), []).append((len(group.ranks), group.calls))
    return _table(
        "Communicators",
        "by their description; size: ranks of each; calls: of all ranks",
        [
            ("description", "l", [description or "none" for description, _ in kinds]),
            ("serves", "l", [purpose or words.ABSENT for _, purpose in kinds]),
            ("size", "r", [_range([size for size, _ in each]) for each in kinds.values()]),
            ("calls", "r", [str(sum(calls for _, calls in each)) for each in kinds.values()]),
        ],
    )


def _needs(found: Info) -> Table:
    """What is lacking, once for all ranks that lack it."""
    lacking: dict[Need, list[RankInfo]] = {need: [] for need in found.job.needs}
    for file in found.files:
        for rank in file.ranks:
            for need in rank.needs:
                lacking.setdefault(need, []).append(rank)
    return _table(
        "What to add to the recording",
        "a line for the script or the command",
        [
            ("ranks", "l", [_ranks(ranks) for ranks in lacking.values()]),
            ("there is", "l", [need.lacks for need in lacking]),
            ("add", "l", [need.add for need in lacking]),
        ],
    )


def _problems(found: Info) -> Iterator[str]:
    """Why traces or ranks could not be read."""
    for file in found.files:
        if file.trace and file.problem is not None:
            yield file.problem if file.hint is None else f"{file.problem.rstrip('.')}. {file.hint}"
        yield from (rank.problem for rank in file.ranks if rank.problem is not None)


def _findings(found: Info) -> Iterator[Finding]:
    for file in found.files:
        yield from rank_findings.of_file(file)
    yield from found.job.findings


def _job(job: JobInfo) -> Iterator[str]:
    """What the files are as one job."""
    if not job.ranks:
        return
    parts = [f"{words.ranks_named(job.ranks)}" + ("" if job.world_size is None else f" of {job.world_size}")]
    if job.missing_ranks:
        parts.append(f"{words.ranks_named(job.missing_ranks)} missing")
    known = job.answer != "nothing"
    if known and len(job.ranks) > 1:
        parts.append(f"steps on all of them: {words.rank_list(job.common_steps)}")
    if known:
        parts.append(f"complete: {words.rank_list(job.complete_steps)}")
    yield f"As one job: {'; '.join(parts)}. {_ANSWERS[job.answer]}{_why(job)}."


def _why(job: JobInfo) -> str:
    text = "" if job.problem is None else f", for {job.problem}"
    return f"{text}; the data are degraded, see the warnings" if job.verdict == "degraded" else text


def _table(
    title: str, denominator: str, columns: Sequence[tuple[str, str, Sequence[str]]], spare: tuple[str, ...] = ()
) -> Table:
    """A table of columns, of which those without any text are left out; rows beyond the most are counted."""
    columns = [column for column in columns if any(column[2])]
    rows = tuple(zip(*(cells for _, _, cells in columns), strict=True)) if columns else ()
    hidden = len(rows) - _MOST
    return Table(
        title=title,
        denominator=denominator,
        align="".join(side for _, side, _ in columns),
        headers=tuple(name for name, _, _ in columns),
        rows=rows[:_MOST],
        more=f"… and {hidden} more, see --json" if hidden > 0 else None,
        spare=spare,
    )
