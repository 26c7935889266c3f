"""Communication explained: calls, bytes, and how much of their time nothing hides."""

from __future__ import annotations

from bubblescope.report.entries import RUN, Entry, Example

__all__ = ["TRAFFIC"]

_UNIT = "ns, mean a rank and step over the used steps"
_CALLS = "Communication"
_SECTION = "communication"
_NCCL = "nccl-tests, doc/PERFORMANCE.md"

TRAFFIC = (
    Entry(
        name="calls",
        summary="how often a rank makes such a call in a step",
        text="Sends and receives between stages count apart; a kernel that holds several messages is one call.",
        keys=("communication[].calls",),
        formula="means a rank and step over the used steps",
        unit="calls, mean a rank and step: a mean need not be whole",
        example=Example(
            setting=RUN,
            rows=(
                ("rank 0 sends 8 and receives 8", "8 + 8", "16"),
                ("rank 1 does both both ways", "4 * 8", "32"),
                ("mean over 4 ranks", "(16 + 32 + 32 + 16) / 4", "24"),
            ),
        ),
        reading="For pp: 4 m v on an inner rank, less at the ends of the pipeline.",
        pitfalls="Ranks differ: the ends of a pipeline have half the messages.",
        where=_CALLS,
        see=("total", "bytes"),
        section=_SECTION,
    ),
    Entry(
        name="bytes",
        summary="how much a rank moves by such calls in a step",
        text="The payload of the calls, as the trace tells it.",
        keys=("communication[].bytes",),
        formula="means a rank and step over the used steps",
        unit="bytes a rank and step; the table shows kB, MB and GB of 1000",
        example=Example(
            setting="24 messages of 4096 tokens, 1024 values of 2 bytes each",
            rows=(("bytes", "24 * 4096 * 1024 * 2 / 10 ** 6", "201.3 MB"),),
        ),
        reading="bytes / transfer is the rate at which they moved.",
        pitfalls="Null if the trace does not say for every call. What a ring sends to move it is more or less.",
        where=_CALLS,
        see=("calls", "bus_bandwidth", "communication.transfer"),
        section=_SECTION,
    ),
    Entry(
        name="total",
        summary="the sum of the lengths of such calls",
        text="How long the calls last, whatever runs beside them and however many overlap.",
        keys=("communication[].total_ns",),
        formula="sum of the calls' lengths",
        unit=_UNIT,
        example=Example(setting=RUN, rows=(("wait and transfer of 24 messages", "152 + 24", "176 ms"),)),
        reading="It is wait + transfer.",
        pitfalls="It can exceed the step. What it costs is exposed, and of that the bubble knows best.",
        where=_CALLS,
        see=("exposed", "communication.wait", "communication.transfer"),
        section=_SECTION,
    ),
    Entry(
        name="exposed",
        summary="the time in which such calls run and no compute does",
        text="The part of the communication that is not hidden. Calls that overlap count once.",
        keys=("communication[].exposed_ns",),
        formula="the union of a rank's calls of the kind, less what compute (the optimizer included) hides",
        unit=_UNIT,
        example=Example(
            setting="a call from 0 to 10 ms, one from 6 to 14 ms, compute from 8 to 12 ms",
            rows=(
                ("union", "14 - 0", "14 ms"),
                ("exposed", "14 - (12 - 8)", "10 ms"),
            ),
        ),
        reading="The most that hiding the calls could save.",
        pitfalls="A receive that waits is exposed, although a faster link would not help: see wait and transfer.",
        where=_CALLS,
        see=("total", "in_stage_comm", "ranks.dp", "pp"),
        section=_SECTION,
        source="the union, as in NVIDIA Megatron-Bridge's guide to nsys",
    ),
    Entry(
        name="communication.wait",
        summary="how long the calls waited for their other members",
        text="The part of a call's length in which some member of its group had not come yet.",
        keys=("communication[].wait_ns",),
        formula="wait_ns = total - transfer",
        unit=_UNIT,
        example=Example(setting=RUN, rows=(("wait", "176 - 24", "152 ms"),)),
        reading="A faster network does not change it: somebody is late. Find out who.",
        pitfalls="Null where a member is missing or calls cannot be matched.",
        where=_CALLS,
        see=("communication.transfer", "pp_wait", "straggler", "clock.error"),
        section=_SECTION,
        source="ByteDance, arXiv 2505.05713, section 3.2",
    ),
    Entry(
        name="communication.transfer",
        summary="how long the calls moved bytes",
        text="From when the last member of the group had come to the call's own end.",
        keys=("communication[].transfer_ns",),
        formula="a call's own end minus the latest start of any member of its group",
        unit=_UNIT,
        example=Example(
            setting=RUN,
            rows=(("24 messages of 1 ms", "24 * 1", "24 ms"), ("of the total", "24 / 176", "13.6%")),
        ),
        reading="This is what a faster link shortens.",
        pitfalls=(
            "It compares clocks of ranks: errors of the clocks go into it. On CPU a send lasts until somebody asks "
            "for it, and only the earlier end of the two halves counts."
        ),
        where=_CALLS,
        see=("communication.wait", "pp_transfer", "bus_bandwidth", "p2p"),
        section=_SECTION,
        source="ByteDance, arXiv 2505.05713, section 3.2",
    ),
    Entry(
        name="algorithm_bandwidth",
        summary="bytes over the time in which they moved",
        text="How fast such calls get their payload done. What waits moves nothing, and does not count.",
        keys=("communication[].algorithm_bandwidth",),
        also=("algbw",),
        formula="algorithm_bandwidth = S / t",
        unit="bytes a second, sums over sums of the calls whose bytes and transfer are known",
        example=Example(
            setting=RUN,
            rows=(("S / t", "24 * 4096 * 1024 * 2 / 0.024 / 10 ** 9", "8.4 GB/s"),),
        ),
        reading="Divide the bytes of a call by it to know how long the call takes once all are there.",
        pitfalls="For collectives it falls with the size of the group, whatever the link: see bus_bandwidth.",
        where="JSON only",
        see=("bus_bandwidth", "bytes", "communication.transfer"),
        section="bandwidth",
        source=_NCCL,
    ),
    Entry(
        name="bus_bandwidth",
        summary="the rate at which links moved the bytes of such calls",
        text=(
            "Bytes over transfer time, times what the algorithm sends for each byte of payload, so that calls of "
            "different kinds and group sizes can be compared with the link."
        ),
        keys=("communication[].bus_bandwidth", "communication[].group_size"),
        also=("bus bw", "busbw"),
        formula="bus_bandwidth = S / t times a factor",
        unit="bytes a second; the factor is 2 (n-1)/n for an all_reduce among n, group_size, and 1 for a message",
        example=Example(
            setting="an all_reduce of 1 GB among 8 ranks, transfer 10 ms",
            rows=(
                ("algorithm bandwidth", "1 / 0.010", "100 GB/s"),
                ("bus bandwidth", "1 / 0.010 * 2 * (8 - 1) / 8", "175 GB/s"),
            ),
        ),
        reading="Compare it with what the link can do: far less says that the call is small, or the link is shared.",
        pitfalls="Null without bytes, or without the start of every member: waiting must be taken off first.",
        where=f"{_CALLS}, column bus bw",
        see=("algorithm_bandwidth", "bytes", "communication.transfer", "links"),
        section="bandwidth",
        source=_NCCL,
    ),
    Entry(
        name="links",
        summary="the messages of one direction from one rank to another, against those of other links",
        text=(
            "For each pair of ranks and direction: how many messages, of how many nothing tells when they moved "
            "(untold), and of the median message bytes, transfer, wait and bandwidth. slow names the links that are "
            "surely slower than their peers."
        ),
        keys=(
            "links[].messages",
            "links[].untold",
            "links[].bytes",
            "links[].transfer_ns",
            "links[].wait_ns",
            "links[].bandwidth",
        ),
        also=("slow links",),
        formula="A link is what one rank sends to another in one direction, forwards or backwards, in the used steps",
        unit="counts, bytes, ns and bytes a second; of the median message",
        example=Example(
            setting=RUN,
            rows=(("bandwidth of each link", "4096 * 1024 * 2 / 0.001 / 10 ** 9", "8.4 GB/s"),),
        ),
        reading="evidence says why a link is slow, or why not: too few messages, for example.",
        pitfalls="Part of what a slow link takes may be hidden. What is lost is the cause p2p.",
        where="JSON; the slow ones in the summary",
        see=("links.ratio", "p2p", "bus_bandwidth", "communication.transfer"),
        section="slow-links",
    ),
    Entry(
        name="links.ratio",
        summary="the transfer of a link's median message over that of its peers",
        text="Peers are the links of the same direction; between hosts only those between hosts, if there are any.",
        keys=("links[].ratio",),
        formula="ratio is the median of the link over that of its peer",
        unit="a ratio; times are taken per byte if bytes are known; null without peers",
        example=Example(
            setting="a link whose median message takes 3.1 ms, at peers whose medians are 1.0, 1.1 and 1.2 ms",
            rows=(("ratio, over the lower median", "3.1 / 1.1", "2.8"),),
        ),
        reading="slow asks for more: surely over 1.2 (at 99 %), and at a price of 1 % of the window or more.",
        pitfalls="Two links of one direction are compared with each other, a single one with none.",
        where="JSON",
        see=("links", "p2p"),
        section="slow-links",
    ),
)
