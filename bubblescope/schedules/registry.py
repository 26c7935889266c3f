"""The schedules that bubblescope knows. A new one is a module beside this and a line below.

The order of the list decides which name an order goes by that several schedules share.
"""

from __future__ import annotations

from difflib import get_close_matches

from bubblescope.errors import UsageError
from bubblescope.schedules import (
    chimera,
    controlled_memory,
    dualpipe,
    forward_only,
    gpipe,
    hanayo,
    interleaved,
    looped_bfs,
    naive,
    one_f_one_b,
    pipedream,
    seq1f1b,
    zb_search,
    zb_v,
    zero_bubble,
)
from bubblescope.schedules.family import Family

__all__ = ["FAMILIES", "find"]

FAMILIES: tuple[Family, ...] = (
    one_f_one_b.FAMILY,
    gpipe.FAMILY,
    naive.FAMILY,
    forward_only.FAMILY,
    one_f_one_b.EAGER,
    interleaved.FAMILY,
    looped_bfs.FAMILY,
    zero_bubble.H1,
    zero_bubble.H2,
    zb_search.ONE,
    zb_search.TWO,
    zero_bubble.INTERLEAVED,
    zb_v.FAMILY,
    dualpipe.FAMILY,
    dualpipe.FOLDED,
    chimera.FAMILY,
    pipedream.FAMILY,
    pipedream.DOUBLE_BUFFERED,
    controlled_memory.HALF,
    controlled_memory.MIN,
    hanayo.FAMILY,
    seq1f1b.FAMILY,
)


def find(name: str) -> Family:
    """The schedule of a name or alias; raises UsageError with near names."""
    names = {alias: family for family in FAMILIES for alias in (family.name, *family.aliases)}
    wanted = name.strip().lower().replace("_", "-")
    if wanted in names:
        return names[wanted]
    near = get_close_matches(wanted, names, n=3)
    known = ", ".join(family.name for family in FAMILIES)
    raise UsageError(
        f"no schedule is called {name!r}",
        hint=f"did you mean {', '.join(near)}?" if near else f"known schedules: {known}",
    )
