"""Findings about what is wrong with a run, explained."""

from __future__ import annotations

from bubblescope.report.entries import Entry, Example

__all__ = ["OF_TROUBLES"]

_SHOWN = "What would help; findings in JSON"
_SECTION = "which-findings-there-are"

OF_TROUBLES = (
    Entry(
        name="stage-imbalance",
        summary="a stage is heavier than the others, and all wait for it",
        text="Work should go from it to lighter stages. Embedding, output layer and loss weigh like layers.",
        hidden=("findings.stage-imbalance",),
        formula="T2 - T1 of the causes; an output layer weighs V / (12h + 2s) layers in a forward",
        gain=(
            "bubblescope whatif layers=best where the layers are known and that saves half of what even stages would; "
            "else without=imbalance, as if work could be divided to any fraction"
        ),
        neighbours=(
            "Where late hosts or another cause hide it, it is told without a gain of its own: then see what both save."
        ),
        pitfalls=(
            "Layers are whole, and memory moves with them. With one replica a slow GPU looks like a heavy stage. A "
            "vocabulary that is spread over all ranks takes one or two more micro-batches of memory."
        ),
        remedy="One layer less on the first and the last stage (Llama 3); or vocabulary parallelism.",
        example=Example(
            setting="an output layer with a vocabulary of 128000, h 4096, s 8192, in transformer layers",
            rows=(("V / (12h + 2s)", "128000 / (12 * 4096 + 2 * 8192)", "2.0 layers"),),
        ),
        where=_SHOWN,
        see=("imbalance", "stage_ratio", "slowest_stage", "findings.gain"),
        section=_SECTION,
        source="arXiv 2505.05713, section 5; Llama 3, arXiv 2407.21783, section 3.3.2; arXiv 2411.05288",
    ),
    Entry(
        name="findings.straggler",
        summary="ranks are slow against the replicas of their stage",
        text="The finding `straggler` names them. All replicas wait for theirs when gradients are reduced.",
        formula="T with the rank as the usual replica of its stage, against T",
        gain="bubblescope whatif without=straggler",
        pitfalls=(
            "With two replicas nobody knows whether one is slow or the other quick. Different data for the replicas "
            "make differences too."
        ),
        remedy="Check clock rates, power, temperature, ECC errors, other processes; replace the node.",
        example=Example(
            setting="one of three replicas takes 378 ms, the others 330 ms; 20 ms of gradients and optimizer",
            rows=(("gain", "1 - (330 + 20) / (378 + 20)", "12.1%"),),
        ),
        where=_SHOWN,
        see=("straggler", "stragglers", "slowest_rank_share", "findings.gain"),
        section=_SECTION,
        source="arXiv 2505.05713, sections 3 and 5",
    ),
    Entry(
        name="findings.data-length",
        summary="some micro-batches hold more work than others",
        text="The finding `data-length`: these micro-batches are long on every rank, forwards and backwards alike.",
        formula="attention costs sum s_i^2 over the sequences of a micro-batch, the rest of a layer sum s_i",
        gain="bubblescope whatif without=data: the same work, the same in every micro-batch",
        pitfalls="Samples have to be sorted or packed over replicas too, which changes the order of the data.",
        remedy="Form micro-batches, and the shares of the replicas, of equal sums of squared lengths.",
        example=Example(
            setting="4096 tokens as one sequence, and as four of 1024: the squares",
            rows=(("one", "4096 ** 2 / 10 ** 6", "16.8 million"), ("four", "4 * 1024 ** 2 / 10 ** 6", "4.2 million")),
        ),
        where=_SHOWN,
        see=("data_length", "jitter.data", "findings.gain"),
        section=_SECTION,
        source="arXiv 2505.05713, section 5.3",
    ),
    Entry(
        name="garbage-collection",
        summary="single forwards pause, and no backwards",
        text="Something stops Python, which launches forwards; backwards are launched from C++.",
        hidden=("findings.garbage-collection", "gc"),
        formula="what paused forwards took beyond the median of their like",
        gain="bubblescope whatif without=pauses: pauses of the work and of the host",
        pitfalls="Memory grows between collections. A late loader or a checkpoint pauses forwards as well.",
        remedy="gc.disable(), and gc.collect() every so many steps, on all ranks at once.",
        example=Example(
            setting="8 ranks that each pause 50 ms in a step of 400 ms: one after the other, or together",
            rows=(("one after the other, at most", "8 * 50 / 400", "100%"), ("together", "50 / 400", "12.5%")),
        ),
        where=_SHOWN,
        see=("imbalance.pauses", "jitter.pauses", "host.pauses", "findings.gain"),
        section=_SECTION,
        source="arXiv 2505.05713, section 5.4",
    ),
    Entry(
        name="uneven-actions",
        summary="equal actions take unequal times, without a pattern",
        text="What long data and pauses leave of jitter.",
        hidden=("findings.uneven-actions",),
        formula="the gain without jitter, less that without what data and pauses explain of it",
        gain="bubblescope whatif without=jitter, less without=data+pauses where these were found",
        pitfalls="Some variation always stays. The gain is that of none at all.",
        remedy="Lock the clock rates for a trial, look for other work on GPUs and links, balance the experts.",
        example=Example(
            setting="without jitter a step saves 5 %, without long data alone 3 %",
            rows=(("gain", "0.05 - 0.03", "2%"),),
        ),
        where=_SHOWN,
        see=("jitter", "jitter.rest", "findings.gain"),
        section=_SECTION,
        source="arXiv 2505.05713, section 3",
    ),
    Entry(
        name="slow-link",
        summary="messages between two ranks take longer than between others",
        text="The link is surely slower than its peers, by more than a fifth, and that costs something.",
        hidden=("findings.slow-link",),
        formula="median time per byte over that of the peers",
        gain="bubblescope whatif without=p2p: free transfers on all links, so it is more than this link costs",
        pitfalls="A link that crosses nodes stays slower than one within a node.",
        remedy="Look at the network card and its other users; lay stages so that neighbours share a node.",
        example=Example(
            setting="a message of 8 MiB takes 1.2 ms on one link, 0.5 ms on the others",
            rows=(("ratio", "1.2 / 0.5", "2.4"),),
        ),
        where=_SHOWN,
        see=("findings.p2p", "p2p", "findings.gain"),
        section=_SECTION,
        source="MegaScale, arXiv 2402.15627; Megatron-LM, arXiv 2104.04473, section 4.1",
    ),
    Entry(
        name="findings.p2p",
        summary="ranks wait while messages between stages move",
        text=(
            "The finding `p2p`. Its gain is that of posting them ahead, or where that saves little that of free ones: "
            "its title says which."
        ),
        formula="1f1b with sends that hold their rank waits 2(m+p)-5 transfers a step, posted ahead 2(p-1)",
        gain=(
            "bubblescope whatif overlap where that saves half of what free transfers would; else without=p2p, which no "
            "link can do"
        ),
        pitfalls="No link is free. Forwards that run ahead keep more activations, and virtual stages send more.",
        remedy="Post receives early, let no send hold its rank; for 1f1b eager-1f1b; faster links, smaller messages.",
        example=Example(
            setting="1f1b with p = 8, m = 32 and 1 ms a transfer",
            rows=(("sends hold their rank", "2 * (32 + 8) - 5", "75 ms"), ("posted ahead", "2 * (8 - 1)", "14 ms")),
        ),
        where=_SHOWN,
        see=("p2p", "slow-link", "eager-1f1b", "findings.gain"),
        section=_SECTION,
        source="MegaScale, arXiv 2402.15627; Megatron-LM, arXiv 2104.04473, section 2.2",
    ),
    Entry(
        name="host-bound",
        summary="ranks wait for their hosts to launch work",
        text="The input of an action is there and nothing is launched yet, or not fast enough.",
        hidden=("findings.host-bound",),
        formula="T6 - T5 of the causes, without single pauses",
        gain="bubblescope whatif without=host, less without=pauses where pauses were found",
        pitfalls="The profiler slows hosts down itself: compare steps with those of a run without it.",
        remedy="Fewer and larger kernels (torch.compile, CUDA graphs), more loader workers, no .item() in a step.",
        example=Example(
            setting="8 micro-batches, forward and backward, 0.2 ms late each, in a step of 355 ms",
            rows=(("late", "2 * 8 * 0.2", "3.2 ms"), ("at most", "3.2 / 355", "0.9%")),
        ),
        where=_SHOWN,
        see=("causes.host", "ranks.host", "findings.gain"),
        section=_SECTION,
        source="Holistic Trace Analysis, idle time breakdown; arXiv 2505.05713, section 5.4",
    ),
)
