"""What would help explained: what each finding means, how its gain is worked out, and what stands against it."""

from __future__ import annotations

from bubblescope.report.design_pages import OF_DESIGN
from bubblescope.report.entries import Entry, Example
from bubblescope.report.trouble_pages import OF_TROUBLES

__all__ = ["ADVICE"]

_GAIN = Entry(
    name="findings.gain",
    summary="the share of a step that a proposal saves at most, for the same data",
    text="The run is replayed with one thing changed; the gain is what the whole step gets shorter by.",
    keys=("findings[].gain", "findings[].gain_ns"),
    hidden=("saves at most",),
    formula="1 - step with the change / step replayed as it was, for the same data",
    unit="a share of a whole step, gradients and optimizer included; gain_ns in nanoseconds of a measured step",
    example=Example(
        setting="twice the micro-batches: the replay goes from 355 ms to 610 ms for twice the data",
        rows=(("gain", "1 - 610 / 355 * 8 / 16", "14.1%"), ("gain_ns", "355 - 610 / 2", "50 ms")),
    ),
    reading="An upper bound: what is not modelled costs time. One change at a time: gains do not add.",
    pitfalls=(
        "Null where the numbers are not to be trusted, where no what-if replays the change, and for a trouble "
        "that another one hides: of these the text has what both save together."
    ),
    where="What would help; findings in JSON",
    see=("not-the-bubble", "trusted", "structural"),
    section="how-gains-are-worked-out",
    source="replaying with selected changes: ByteDance, arXiv 2505.05713, section 3",
)

_INSTEAD = Entry(
    name="not-the-bubble",
    summary="another part of the step than the bubble is what to look at",
    text=(
        "It comes first where exposed communication, the optimizer or idle time outside the pipeline take more of a "
        "step than the bubble does; it is also said where the bubble is small, and where there is no pipeline."
    ),
    hidden=("findings.not-the-bubble",),
    formula="an overhead of 5 % of the step or more that is larger than the bubble, or a bubble below 5 % of the step",
    gain="none is claimed: shares say where the time is, not how much of it can be saved",
    neighbours="Means over the ranks of the slowest pipeline, which wait for no other replica at the gradients.",
    remedy="It says what: hide gradients or collectives, mend the optimizer or the loader, or look at the kernels.",
    example=Example(
        setting="a step of 400 ms: a window of 300 ms of which 10 % is bubble, then 100 ms of gradients",
        rows=(("bubble", "0.1 * 300 / 400", "7.5%"), ("gradients", "100 / 400", "25%")),
    ),
    where="What would help; findings in JSON",
    see=("findings.gain", "outside", "exposed-dp", "exposed-tp"),
    section="which-findings-there-are",
)

ADVICE = (_GAIN, _INSTEAD, *OF_TROUBLES, *OF_DESIGN)
