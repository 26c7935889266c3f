"""What was found explained: schedule, steps, clocks and the verdict on the data, and how sure each is."""

from __future__ import annotations

from bubblescope.report.entries import Entry, Example

__all__ = ["FOUND"]

FOUND = (
    Entry(
        name="confidence",
        summary="how like the recovered order is to the order of the schedule",
        text="Every schedule's order is made for the p, m and v found, and compared with what the ranks ran.",
        keys=("schedule.confidence", "schedule.runner_up.confidence"),
        also=("likeness",),
        formula="the mean likeness over the positions recorded; 2 L / (a + b)",
        unit="0 to 1; L is the longest run of actions in the same order, a and b the lengths of the two orders",
        example=Example(
            setting="a rank whose 16 actions have 14 in the order of the schedule's 16",
            rows=(("likeness", "2 * 14 / (16 + 16)", "0.875"),),
        ),
        reading="1 is the very order. Below 0.85 the schedule is unknown. The runner-up says how near the next is.",
        pitfalls="It is no probability. Schedules with one order on the recorded ranks share an answer, see also.",
        where="Schedule",
        see=("departures", "formula", "1f1b"),
        section="naming-the-schedule",
    ),
    Entry(
        name="departures",
        summary="places where a rank's usual order leaves that of the schedule",
        text="Each with rank, position in its order, and the actions expected and found there.",
        keys=("schedule.departures[].position",),
        also=("departure",),
        formula="the places where the usual order of a position leaves the schedule's",
        unit="a list; positions count from 0",
        example=Example(
            setting="a rank of 16 actions runs a forward two places late",
            rows=(("likeness with one action out of place", "2 * 15 / (16 + 16)", "0.94"),),
        ),
        reading="None: the run did what its schedule says. Many: another schedule, or wrongly told micro-batches.",
        pitfalls="An action that is missing on one side stands as null there.",
        where="Schedule",
        see=("confidence",),
        section="naming-the-schedule",
    ),
    Entry(
        name="microbatches",
        summary="m, the micro-batches of a step and a pipeline",
        text="How many forwards a stage runs in a step, without those of evaluations; where steps differ, in most.",
        keys=("schedule.microbatches", "steps[].microbatches"),
        also=("m", "micro-batches"),
        formula="m is the number of forwards that a stage most often runs in a step",
        unit="micro-batches; null if nothing tells it",
        example=Example(
            setting="1f1b with 4 stages: m against what the schedule owes",
            rows=(("m = 8", "3 / (8 + 3)", "27.3%"), ("m = 16", "3 / (16 + 3)", "15.8%")),
        ),
        reading="The cheapest way to a smaller structural bubble is more of them, if memory and batch size allow.",
        pitfalls="The global batch is m times the micro-batch times the data-parallel degree.",
        where="Layout",
        see=("formula", "structural"),
        section="which-steps-count",
    ),
    Entry(
        name="used",
        summary="which steps the means take",
        text=(
            "The complete ones of the commonest size without an evaluation, less the first of all where at least two "
            "others remain: it often holds warm-up."
        ),
        keys=("steps[].used", "steps[].complete"),
        also=("complete",),
        formula="A step is complete if every rank has all of its actions in it",
        unit="true or false",
        example=Example(setting="5 steps recorded, the last cut off", rows=(("used", "5 - 1 - 1", "3"),)),
        reading="With --steps the means take just the complete ones among the steps asked for.",
        pitfalls="A profiler that stops in a step leaves it incomplete, although its range may be there.",
        where="Steps",
        see=("spread", "incomplete-steps", "steps-assumed"),
        section="which-steps-count",
    ),
    Entry(
        name="kind",
        summary="what a step holds: a training, an evaluation, or both",
        text=(
            "training: each forward has a backward. evaluation: forwards only, in a job that trains. mixed: a training "
            "with an evaluation before or behind it, extra_forwards long. inference: nothing in the job has a backward."
        ),
        keys=("steps[].kind", "steps[].extra_forwards"),
        hidden=("training", "evaluation", "mixed"),
        formula="on every rank, as many forwards more than backwards",
        unit="a word, null where ranks do not tell it alike; micro-batches",
        example=Example(
            setting="a step of 4 micro-batches with an evaluation of 3 behind its optimizer",
            rows=(("extra_forwards", "7 - 4", "3"),),
        ),
        reading="Means take trainings; of a mixed step, where there are no others, the training alone.",
        pitfalls="An evaluation that stands inside a step lengthens it: step time and throughput of that step hold it.",
        where="Steps, where one differs; odd-steps",
        see=("used", "microbatches", "odd-steps"),
        section="which-steps-count",
    ),
    Entry(
        name="clock.error",
        summary="how far the clock of a rank may still be off after alignment",
        text="Hosts have clocks of their own. Messages and collectives bound how far these can be apart.",
        keys=("clock.error_ns",),
        also=("clock error",),
        formula="the distance from its place to the farthest one that the bounds allow, the largest over the ranks",
        unit="ns, either way; null if nothing bounds it, 0 on one host",
        example=Example(
            setting="by the messages an offset lies between 1.2 and 2.0 ms, and is set to the middle",
            rows=(("offset", "(1.2 + 2.0) / 2", "1.6 ms"), ("error", "(2.0 - 1.2) / 2", "0.4 ms")),
        ),
        reading="Harmless where it is far below the transfers. Waiting and transfer are as uncertain as this.",
        pitfalls="The bubble itself depends on it only where two ranks' clocks make the window.",
        where="Clocks",
        see=("offsets", "violations", "clock-uncertain", "communication.transfer"),
        section="clocks",
    ),
    Entry(
        name="offsets",
        summary="what was added to each rank's clock, and how that changes",
        text="offsets_ns is what was added in the middle of the recording, drift_ppm how much that changes a second.",
        keys=("clock.offsets_ns", "clock.drift_ppm"),
        also=("drift", "clock offset"),
        formula="what was added to each rank's clock in the middle of the recording",
        unit="ns, and microseconds a second (parts per million); by rank",
        example=Example(
            setting="a clock that drifts by 20 ppm in a recording of 10 s",
            rows=(("at its ends, against its middle", "20 * 10 / 2", "100 us"),),
        ),
        reading="Some ms between hosts are common. The offsets of one host are 0 against each other.",
        pitfalls="Nothing is added where nothing connects the hosts (method recorded).",
        where="JSON only; Clocks says the method",
        see=("clock.error", "violations"),
        section="clocks",
    ),
    Entry(
        name="violations",
        summary="messages, actions and collectives that contradict cause and effect all the same",
        text="Pairs whose times cannot be on the job's clock: wrongly matched, a profiler's slip, or a stepped clock.",
        keys=("clock.violations",),
        formula="What still contradicts the fit by more than 5 us counts as a violation",
        unit="a count",
        example=Example(
            setting="2 of 768 messages contradict the fit",
            rows=(("violations, of the messages", "2 / 768", "0.3%"),),
        ),
        reading="A few are ordinary. Many: a clock was stepped, or ranks, steps or actions are told apart wrongly.",
        pitfalls="On one host it counts too, as its GPUs share a clock.",
        where="Clocks",
        see=("clock.error", "clock-uncertain", "contradiction"),
        section="clocks",
    ),
    Entry(
        name="verdict",
        summary="how far the data can be trusted: ok, degraded or unusable",
        text=(
            "ok: nothing speaks against the numbers. degraded: something is missing, guessed or contradictory, and a "
            "finding says what. unusable: none of the numbers is there, which ends with exit code 3."
        ),
        keys=("quality.verdict",),
        also=("ok", "degraded", "unusable", "quality"),
        formula="under 90 % of the compute inside the pipeline belongs to an action",
        unit="a word; the formula is one of the reasons for degraded, the definitions have all",
        example=Example(
            setting="352 of 400 ms of compute inside the pipeline belong to a known action",
            rows=(("explained, below 90 %: degraded", "352 / 400", "88%"),),
        ),
        reading="With degraded, read the warnings before the numbers, and see trusted.",
        pitfalls="Ranks without a trace do not degrade by themselves, if each stage was seen.",
        where="JSON; the warnings of the summary",
        see=("trusted", "numbers", "missing-ranks", "unexplained-work", "contradiction"),
        section="quality",
    ),
)
