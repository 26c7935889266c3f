"""Pictures of lanes in characters, looked at and found good."""

from __future__ import annotations

import pytest

from bubblescope.report.gantt import STYLES, Bar, Lane, draw
from bubblescope.schedules.family import Costs, Shape
from bubblescope.schedules.registry import find
from bubblescope.schedules.simulate import simulate


def lane(label: str, *bars: tuple[str, float, float]) -> Lane:
    """A lane of (text, start, end)."""
    return Lane(label, tuple(Bar(*bar) for bar in bars))


def schedule(name: str, p: int, m: int, costs: Costs = Costs()) -> list[Lane]:  # noqa: B008  frozen
    """The lanes of a simulated schedule with one chunk a rank."""
    ran = simulate(find(name), Shape(p, m), costs)
    start, end = ran.run.start, ran.run.end
    return [
        Lane(f"rank {rank}", [Bar(f"{a.kind.name}{a.microbatch}", start[a], end[a]) for a in order])
        for rank, order in ran.orders.items()
    ]


def plain(lanes, width: int, **kwargs) -> str:
    """The picture as text."""
    return "".join(f"{line.plain}\n" for line in draw(lanes, width, **kwargs).lines)


def test_1f1b():
    """Four ranks and eight micro-batches fit in one band, with everything readable."""
    expected = """\
time    0         5         10        15        20        25        30
rank 0 |F0F1F2F3............B0  F4B1  F5B2  F6B3  F7B4  ..B5  ..B6  ..B7  |
rank 1 |..F0F1F2........B0  F3B1  F4B2  F5B3  F6B4  F7B5  ..B6  ..B7  ....|
rank 2 |....F0F1....B0  F2B1  F3B2  F4B3  F5B4  F6B5  F7B6  ..B7  ........|
rank 3 |......F0B0  F1B1  F2B2  F3B3  F4B4  F5B5  F6B6  F7B7  ............|
"""
    assert plain(schedule("1f1b", 4, 8), 100) == expected
    assert draw(schedule("1f1b", 4, 8), 100).notes == ()


def test_short_pictures_are_stretched_a_little():
    """With room to spare bars stand apart, and equal bars are equally wide."""
    expected = """\
time    0                   5
rank 0 |F0  F1  ........B0      ....B1      |
rank 1 |....F0  B0      F1  B1      ........|
"""
    assert plain(schedule("1f1b", 2, 2), 100) == expected


def test_uneven_times_are_rounded_to_columns():
    """Times that are no multiples of each other lie where they are to a column, and every number is there."""
    expected = """\
time    0                    50                    100                  150
rank 0 |F0      F1      ........I0     W0  F2      I1      W1  ....I2      W2  |
rank 1 |........F0      I0      F1      I1     W0  F2      I2      W1  W2  ....|
"""
    assert plain(schedule("zb-h1", 2, 3, Costs(18.522, 18.086, 9.337)), 100) == expected


def test_what_does_not_fit_goes_on_below():
    """Bands are equally long, and a bar that the end of one cuts shows its number where it first fits whole."""
    expected = """\
time    0         5         10
rank 0 |F0F1F2........B0  F3B|
rank 1 |..F0F1....B0  F2B1  F|
rank 2 |....F0B0  F1B1  F2B2 |
time             15        20
rank 0 |B1 F4B2  ..B3  ..B4  |
rank 1 | B2  F4B3  ..B4  ....|
rank 2 | F3B3  F4B4  ........|
"""
    assert plain(schedule("1f1b", 3, 5), 32) == expected


def test_numbers_of_two_digits():
    """A number that has been told is not told again in the next band."""
    lanes = [
        lane("rank 0", ("F10", 0, 3), ("F11", 3, 6), ("B10", 7, 13), ("F12", 13, 16), ("F13", 16, 19), ("B11", 22, 28)),
        lane("rank 1", ("F10", 0, 1.5), ("B9", 20, 22)),
    ]
    expected = """\
time    0         5
rank 0 |F10   F11   ..B10  |
rank 1 |F10................|
time     10        15
rank 0 |       F12   F13   |
rank 1 |...................|
time      20        25
rank 0 |......B11         |
rank 1 |..B9  ............|
"""
    assert plain(lanes, 32) == expected


def test_bars_too_narrow_for_their_number():
    """They show their letter alone rather than half of a number, and the picture says so."""
    lanes = [lane("rank 0", ("F10", 0, 3), ("W10", 3, 3.4), ("B10", 7, 13))]
    picture = draw(lanes, 60)
    assert [line.plain for line in picture.lines] == [
        "time    0                   5                  10",
        "rank 0 |F10         W..............B10                     |",
    ]
    assert picture.notes == ("A bar too narrow for its number shows its letter alone, or nothing.",)


def test_cut_pictures_say_so():
    """Bands for which no lines are left are missing, and the note says from which time on."""
    picture = draw(schedule("1f1b", 4, 64), 60, most_lines=12)
    assert len(picture.lines) == 10
    assert picture.notes == ("Cut: the picture shows the first 16.9% of the time; a wider terminal shows more.",)


@pytest.mark.parametrize(
    ("lanes", "width", "notes"),
    [
        ([], 100, ()),
        ([lane("rank 0")], 100, ()),
        ([lane("rank 0", ("F0", 0, 0))], 100, ()),
        ([lane("rank 0", ("F0", 0, 1))], 10, ("No picture: the terminal is too narrow.",)),
        ([lane("rank", ("F0", 0, 1))] * 48, 100, ("No picture: 48 lanes are too many lines.",)),
    ],
)
def test_no_picture(lanes, width, notes):
    """Where there is nothing to draw or no room, there are no lines, and a note says why."""
    picture = draw(lanes, width)
    assert picture.lines == ()
    assert picture.notes == notes


@pytest.mark.parametrize("width", [29, 40, 73, 100, 211])
@pytest.mark.parametrize("scale", [1e-9, 0.3, 1.0, 7e5, 1e12])
def test_lines_fit(width, scale):
    """No line is wider than asked for, whatever the unit of time, and the lines of a band end together."""
    lanes = [
        Lane(each.label, [Bar(bar.text, bar.start * scale, bar.end * scale) for bar in each.bars])
        for each in schedule("1f1b", 3, 12, Costs(1.1, 0.7, 0.9))
    ]
    lines = plain(lanes, width).splitlines()
    assert max(map(len, lines)) <= width
    for first in range(0, len(lines), 4):
        assert len({len(line) for line in lines[first + 1 : first + 4]}) == 1


def test_colours_say_the_kind():
    """Every bar has the colour of its letter, small letters that of the capital one; idle time is dim."""
    (_, line) = draw([lane("rank 0", ("F0", 0, 1), ("i1", 2, 3))], 40).lines
    styles = {line.plain[span.start : span.end].strip(): span.style for span in line.spans}
    assert styles == {"F0": STYLES["F"], "i1": STYLES["I"], "....": "dim"}
