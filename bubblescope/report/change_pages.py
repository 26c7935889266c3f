"""The words of a what-if explained: what each changes, what stays as measured, and what is assumed."""

from __future__ import annotations

from bubblescope.report.entries import Entry, Example

__all__ = ["CHANGES"]

_DOCUMENT = "docs/whatif.md"
_MEGATRON = "Megatron-LM, arXiv 2104.04473, section 2.2"
_STEP = "gradients and optimizer"

CHANGES = (
    Entry(
        name="schedule=NAME",
        summary="another order of the same work",
        text=(
            "What the run would take with another schedule. NAME is a name or an alias of a known one. Without v= a "
            "rank holds as many stages as it does, or if that cannot be as many as the schedule usually has."
        ),
        hidden=("schedule=", "schedule"),
        formula="1f1b owes (p-1)(F+I+W), zb-h1 owes (p-1)(F+I-W)",
        changed="the order of each rank's actions, and where stages lie if the schedule lays them otherwise",
        kept=f"the times of forwards, backwards and transfers of each stage, {_STEP}",
        assumed="half of a backward is its weight gradient, if the run does not split it; sends hold no rank",
        example=Example(
            setting="zb-h1 in place of 1f1b: p = 4, m = 8, F = I = W = 10 ms, transfers free",
            rows=(
                ("window of 1f1b", "8 * 30 + 3 * (10 + 10 + 10)", "330 ms"),
                ("window of zb-h1", "8 * 30 + 3 * (10 + 10 - 10)", "270 ms"),
                ("saved", "1 - 270 / 330", "18.2%"),
            ),
        ),
        pitfalls=(
            "The order is the textbook's, whatever a framework makes of it. Schedules whose steps overlap are another "
            "training, forwards alone are none, and no forecast is made."
        ),
        see=("forecast", "v=N", "forecasts.memory", "zb-h1", "interleaved-1f1b"),
        section="schedule",
        document=_DOCUMENT,
        source="Zero Bubble, arXiv 2401.10241, table 2",
    ),
    Entry(
        name="m=N",
        summary="more or fewer micro-batches a step, each as large as it was",
        text="More of them are more data a step: what is compared is the time for the same data.",
        also=("microbatches=N",),
        hidden=("m=", "m", "microbatches="),
        formula="bubble of 1f1b = (p-1)/(m+p-1)",
        changed="the number of micro-batches, and so the data of a step",
        kept=f"the times of every action and transfer, and {_STEP} once a step",
        assumed="further micro-batches are like the measured ones, those of the later steps",
        example=Example(
            setting="1f1b on 8 ranks, equal stages, transfers free",
            rows=(
                ("bubble, m = 8", "7 / (8 + 7)", "46.7%"),
                ("bubble, m = 32 = 4 p", "7 / (32 + 7)", "17.9%"),
                ("bubble, m = 176", "7 / (176 + 7)", "3.8%"),
            ),
        ),
        reading="The rule that m = 4 p makes the bubble negligible leaves 18% of the time at p = 8.",
        pitfalls="A larger global batch is another training: whether it learns as well no trace can tell.",
        see=("microbatch=K", "forecasts.gain", "microbatches"),
        section="m",
        document=_DOCUMENT,
        source="GPipe, arXiv 1811.06965, section 2.3",
    ),
    Entry(
        name="v=N",
        summary="more or fewer stages on each rank",
        text=(
            "A rank's layers are cut into N stages, and micro-batches pass each rank N times. 1f1b, gpipe and zb-h1 "
            "become interleaved-1f1b, looped-bfs and interleaved-zb, and the reverse."
        ),
        also=("virtual=N",),
        hidden=("v=", "v", "virtual=", "virtual"),
        formula="bubble of interleaved-1f1b = ((p-1)/v)/(m+(p-1)/v)",
        changed="into how many stages the layers of a rank are cut, and how often messages go from rank to rank",
        kept=f"the work of the layers, the time of one transfer, {_STEP}",
        assumed="layers are spread as evenly as their number allows; if none are seen, they can be cut anywhere",
        example=Example(
            setting="p = 4, m = 8, equal stages, transfers free",
            rows=(("v = 1", "3 / (8 + 3)", "27.3%"), ("v = 2", "(3 / 2) / (8 + 3 / 2)", "15.8%")),
        ),
        pitfalls="Messages become more, so that slow links eat the gain. Many schedules need m to be divisible by p.",
        see=("schedule=NAME", "p2p=K", "interleaved-1f1b"),
        section="v",
        document=_DOCUMENT,
        source=_MEGATRON,
    ),
    Entry(
        name="tp=N",
        summary="more tensor parallelism and fewer stages, or the reverse, on the same GPUs",
        text="tp x pp stays what it is: with twice the tensor-parallel degree the pipeline is half as long.",
        hidden=("tp=", "tp"),
        formula="bubble of 1f1b = (n/t-1)/(m+n/t-1), with n GPUs a pipeline and t of them a stage",
        changed="how many ranks share a stage, how many stages there are, and which layers a stage holds",
        kept=f"the GPUs, the micro-batches, the work of a layer, {_STEP}",
        assumed="work divides evenly; collectives of a stage move (t-1)/t of their data, at the measured speed",
        example=Example(
            setting="16 GPUs, m = 16, equal stages, transfers free",
            rows=(("t = 1", "15 / (16 + 15)", "48.4%"), ("t = 4", "3 / (16 + 3)", "15.8%")),
        ),
        pitfalls=(
            "Of a run with t = 1 nothing tells what collectives would cost, and they are free. Beyond the GPUs of one "
            "node they cross the network, and cost far more than is assumed."
        ),
        see=("forecast", "in_stage_comm", "m=N"),
        section="tp",
        document=_DOCUMENT,
        source="GLM-130B, arXiv 2210.02414, equation 6",
    ),
    Entry(
        name="microbatch=K",
        summary="micro-batches K times as large, for the same data a step",
        text="With K = 2 a step has half as many micro-batches, each of twice the size; with 1/2 twice as many.",
        hidden=("microbatch=", "microbatch"),
        changed="the size of a micro-batch and, for the same data, their number; messages grow with the size",
        kept=f"the data of a step, {_STEP}",
        assumed="work and transfers grow with the size, gaps of the host do not",
        unit="a factor: 2, 0.5, 1/2",
        example=Example(
            setting="0.1 s of compute, then a gap of 0.1 s; with K = 4",
            rows=(("waiting, as it is", "0.1 / (0.1 + 0.1)", "50%"), ("compute 4 times", "0.1 / (0.4 + 0.1)", "20%")),
        ),
        reading="Larger ones waste less on gaps of the host; smaller ones fill the pipeline, as they are more.",
        pitfalls="Kernels of small micro-batches are less efficient, which is not modelled. m / K must be whole.",
        see=("m=N", "forecasts.memory", "causes.host"),
        section="microbatch",
        document=_DOCUMENT,
    ),
    Entry(
        name="layers=best",
        summary="layers moved from stage to stage",
        text="best is the best split in which stages stay neighbours; layers=8+8+9+7 is one of your own, a stage each.",
        keys=("forecasts[].layers",),
        hidden=("layers=",),
        changed="which layers a stage holds, and so how long its actions take",
        kept=f"the order of the layers and the work of each, transfers, {_STEP}",
        assumed="layers move with their work; embedding, head and loss stay at the ends",
        example=Example(
            setting="32 layers of 3 ms on 4 stages, and a head as long as 2 layers; m = 8",
            rows=(
                ("heaviest stage, 8 layers and the head", "8 * 3 + 2 * 3", "30 ms"),
                ("heaviest stage, 9+9+8+6", "9 * 3", "27 ms"),
                ("saved at least", "(8 - 1) * (30 - 27)", "21 ms"),
            ),
        ),
        reading="The heaviest stage sets the pace: each micro-batch but one costs what it is heavier.",
        pitfalls="Impossible where the traces show no layers, unless --layers says how many each stage has.",
        see=("without=TROUBLE", "imbalance", "stage_ratio"),
        section="layers",
        document=_DOCUMENT,
    ),
    Entry(
        name="p2p=K",
        summary="transfers between stages that take K times as long",
        text="free, or 0, is a link that takes no time; 1/2 is one twice as fast.",
        hidden=("p2p=",),
        changed="the time for which the bytes of a message move",
        kept=f"the order and the times of all actions, {_STEP}; messages still wait for each other",
        assumed="every link changes by the same factor",
        unit="a factor: 2, 0.5, 1/2, free",
        example=Example(
            setting="a receive that begins 7 ms before its send does, which takes 2 ms",
            rows=(("as it is", "7 + 2", "9 ms"), ("p2p=1/2", "7 + 2 / 2", "8 ms"), ("p2p=free", "7 + 2 * 0", "7 ms")),
        ),
        pitfalls="Of messages that nobody recorded nothing can be taken away.",
        see=("p2p", "overlap", "links", "communication.transfer"),
        section="p2p",
        document=_DOCUMENT,
    ),
    Entry(
        name="overlap",
        summary="messages that run beside compute",
        text="Receives are posted ahead, and no send holds its rank until the other side has come.",
        hidden=("overlap=",),
        changed="when messages are posted: a receive at once, a send as soon as its action has ended",
        kept=f"the order and the times of all actions, the time of each transfer, {_STEP}",
        assumed="links and GPUs have room for messages beside compute, which does not become slower by them",
        example=Example(
            setting="a rank whose send of 2 ms is taken 5 ms late, and holds it",
            rows=(("held, as it is", "5 + 2", "7 ms"), ("with overlap", "0 * (5 + 2)", "0 ms")),
        ),
        pitfalls="The receiver still waits for the bytes: where nothing else is to be done, overlap hides nothing.",
        see=("p2p=K", "p2p", "eager-1f1b"),
        section="overlap",
        document=_DOCUMENT,
    ),
    Entry(
        name="without=TROUBLE",
        summary="the run without one of its troubles, or several",
        text=(
            "imbalance: stages weigh the same. straggler: replicas of a stage are equally fast. jitter: actions of a "
            "kind on a rank do not vary; data: nor by the length of their micro-batch; pauses: none of single long "
            "pauses. p2p: transfers are free. host: no gaps of the host. dp: gradients are hidden."
        ),
        hidden=("without=", "without"),
        changed="the trouble is gone, as the causes of the bubble are defined",
        kept="the order of the actions, and every other trouble",
        assumed="the trouble can be mended, to any fraction of a layer",
        example=Example(
            setting="stages of 240, 240, 240 and 288 ms of work",
            rows=(("each, without=imbalance", "(3 * 240 + 288) / 4", "252 ms"),),
        ),
        reading="This is time; a cause of the report is a share of the bubble, and asked for in another order.",
        pitfalls="Where two troubles hide each other, each gone alone saves little: try without=p2p+host.",
        see=("removed", "imbalance", "straggler", "jitter", "p2p", "causes.host"),
        section="without",
        document=_DOCUMENT,
        source="ByteDance, arXiv 2505.05713, section 3",
    ),
    Entry(
        name="even",
        summary="every action as long as the mean of its kind",
        text="The run with all its unevenness gone: equal stages, equal ranks, equal micro-batches.",
        hidden=("even=",),
        changed="each action takes the mean of its kind over all steps, a transfer the median, and no host is late",
        kept=f"the order of the actions, the total of their work, {_STEP}",
        assumed="the troubles can be mended, to any fraction of a layer",
        example=Example(
            setting="three forwards of 10, 12 and 17 ms",
            rows=(("each, with even", "(10 + 12 + 17) / 3", "13 ms"),),
        ),
        pitfalls="Nobody reaches it: it says how much all troubles but the schedule cost together.",
        see=("without=TROUBLE", "structural", "imbalance.slowdown"),
        section="even",
        document=_DOCUMENT,
        source="ByteDance, arXiv 2505.05713, section 3",
    ),
    Entry(
        name="recompute=on|off",
        summary="whether backwards run their forwards again",
        text="on keeps fewer activations and pays with a forward in each backward; off is for a run that does so.",
        hidden=("recompute=",),
        changed="a backward is longer by its forward, or shorter by it",
        kept=f"forwards, the order of the actions, transfers, {_STEP}",
        assumed="full recomputation: of each stage the whole forward is run again",
        example=Example(
            setting="1f1b: p = 4, m = 8, F = 10 ms, B = 20 ms, transfers free",
            rows=(
                ("window, off", "(8 + 3) * (10 + 20)", "330 ms"),
                ("window, on", "(8 + 3) * (10 + 20 + 10)", "440 ms"),
                ("saved by off", "1 - 330 / 440", "25%"),
            ),
        ),
        reading="Where activations leave room, off; where room is short, on for some stages is cheaper than for all.",
        pitfalls="Without it all activations of a micro-batch are kept, which may be many times as much.",
        see=("findings.recompute", "forecasts.memory", "backward"),
        section="recompute",
        document=_DOCUMENT,
        source="Korthikanti et al., arXiv 2205.05198",
    ),
)
