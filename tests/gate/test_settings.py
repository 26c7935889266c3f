"""Settings come from the highest layer that states them; what is wrong in any layer is an error that says where."""

from __future__ import annotations

import os
import re
import time
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblescope.errors import UsageError
from bubblescope.gate.config_files import LARGEST
from bubblescope.gate.settings import resolve, variable
from bubblescope.model.settings import KEYS

GATE_PAGE = (Path(__file__).parents[2] / "docs" / "gate.md").read_text("utf-8")
DEFAULTS = dict.fromkeys(KEYS) | {
    "on-missing-baseline": "fail",
    "allow-mismatch": False,
    "allow-degraded": False,
}


def values(settings):
    """Key to value."""
    return {setting.key: setting.value for setting in settings}


def origins(settings):
    """Key to origin."""
    return {setting.key: setting.origin for setting in settings}


def settle(directory, stated=None, environment=None, **more):
    """The settings there."""
    return resolve(stated or {}, directory=directory, environment=environment or {}, **more)


@pytest.fixture
def project(tmp_path):
    """Makes files below a directory that is the root of a repository; returns the directory."""
    (tmp_path / ".git").mkdir()

    def make(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return tmp_path

    return make


SHARED = '[tool.bubblescope.gate]\nfail-on = ["a", "b"]\n'
OWN = '[gate]\nfail-on = ["own"]\n'
OTHER = "[tool.ruff]\nline-length = 3\n"
OF = "in [tool.bubblescope.gate] of pyproject.toml expects"
VARIABLE = {"BUBBLESCOPE_GATE_FAIL_ON": "e, f\ng"}


@pytest.mark.parametrize(
    ("files", "environment", "stated", "expected"),
    [
        ({}, {}, {}, (None, "default")),
        ({"pyproject.toml": OTHER}, {}, {}, (None, "default")),
        ({"pyproject.toml": "[tool.bubblescope]\n"}, {}, {}, (None, "default")),
        ({"pyproject.toml": "tool = 3\n"}, {}, {}, (None, "default")),
        ({"pyproject.toml": SHARED}, {}, {}, (("a", "b"), "pyproject.toml")),
        ({"pyproject.toml": "\ufeff" + SHARED.replace("\n", "\r\n")}, {}, {}, (("a", "b"), "pyproject.toml")),
        ({"bubblescope.toml": OWN}, {}, {}, (("own",), "bubblescope.toml")),
        ({"bubblescope.toml": '[gate]\nfail-on = "one"\n'}, {}, {}, (("one",), "bubblescope.toml")),
        ({"bubblescope.toml": "[gate]\nfail-on = []\n"}, {}, {}, ((), "bubblescope.toml")),
        ({"bubblescope.toml": OWN, "pyproject.toml": SHARED}, {}, {}, (("own",), "bubblescope.toml")),
        ({"bubblescope.toml": "", "pyproject.toml": SHARED}, {}, {}, (None, "default")),
        ({"pyproject.toml": SHARED}, VARIABLE, {}, (("e", "f", "g"), "BUBBLESCOPE_GATE_FAIL_ON")),
        ({"pyproject.toml": SHARED}, {"BUBBLESCOPE_GATE_FAIL_ON": " "}, {}, (("a", "b"), "pyproject.toml")),
        ({"pyproject.toml": SHARED}, {"BUBBLESCOPE_GATE_NO": ""}, {}, (("a", "b"), "pyproject.toml")),
        ({"pyproject.toml": SHARED}, VARIABLE, {"fail-on": None}, (("e", "f", "g"), "BUBBLESCOPE_GATE_FAIL_ON")),
        ({"pyproject.toml": SHARED}, VARIABLE, {"fail-on": ["o"]}, (("o",), "--fail-on")),
        ({"pyproject.toml": SHARED}, VARIABLE, {"fail_on": "o"}, (("o",), "--fail-on")),
        ({}, {"BUBBLESCOPE_DEBUG": "1", "PATH": "x"}, {"fail-on": ()}, ((), "--fail-on")),
    ],
)
def test_layers(project, files, environment, stated, expected):
    """Default, file, environment, options: the last that states a list has it to itself."""
    settings = settle(project(files), stated, environment)
    assert (settings.fail_on.value, settings.fail_on.origin) == expected
    assert values(settings) == DEFAULTS | {"fail-on": expected[0]}


def test_defaults(tmp_path):
    """Where nobody says anything there are the defaults, in the order of the keys."""
    settings = settle(tmp_path)
    assert [setting.key for setting in settings] == list(KEYS)
    assert values(settings) == DEFAULTS
    assert set(origins(settings).values()) == {"default"}


def test_the_nearest_directory_wins(project):
    """The file is searched upwards, a pyproject.toml of something else is passed, and nearer directories come first."""
    root = project({"pyproject.toml": SHARED, "a/b/c/x": "", "a/b/pyproject.toml": OTHER})
    found = settle(root / "a/b/c")
    assert (found.fail_on.value, found.file) == (("a", "b"), "../../../pyproject.toml")
    assert found.looked == (".", "..", "../..", "../../..")
    project({"a/bubblescope.toml": OWN})
    found = settle(root / "a/b/c")
    assert (found.fail_on.value, found.fail_on.origin) == (("own",), "../../bubblescope.toml")
    assert found.looked == (".", "..", "../..")


@pytest.mark.parametrize("kind", ["directory", "file"])
def test_the_search_ends_at_a_repository(project, kind):
    """What lies above the root of a repository, or of a work tree, is not its own."""
    root = project({"pyproject.toml": SHARED, "inner/sub/x": ""})
    mark = root / "inner" / ".git"
    mark.mkdir() if kind == "directory" else mark.write_text("gitdir: elsewhere")
    found = settle(root / "inner/sub")
    assert (found.file, found.fail_on.value, found.looked) == (None, None, (".", ".."))
    project({"inner/pyproject.toml": '[tool.bubblescope.gate]\npreset = "p"\n'})
    assert settle(root / "inner/sub").preset.value == "p"


def test_a_named_file_is_read_instead(project):
    """No other is searched, and its name says where its table is."""
    root = project({"pyproject.toml": SHARED, "ci/gate.toml": OWN, "ci/pyproject.toml": SHARED})
    named = settle(root, file=Path("ci/gate.toml"))
    assert (named.fail_on.value, named.fail_on.origin, named.looked) == (("own",), "ci/gate.toml", ())
    assert settle(root, file=root / "ci/gate.toml").file == "ci/gate.toml"
    assert settle(root, file=Path("ci/pyproject.toml")).fail_on.value == ("a", "b")
    project({"ci/pyproject.toml": OTHER})
    assert settle(root, file=Path("ci/pyproject.toml")).fail_on.value is None


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="there is none")  # noqa: PTH110
def test_nothing_is_read_from_nowhere(project):
    """`--config /dev/null` switches files off."""
    assert values(settle(project({"pyproject.toml": SHARED}), file=Path("/dev/null"))) == DEFAULTS


def test_a_baseline_lies_where_its_file_says(project):
    """A path in a file is relative to that file, any other to the working directory."""
    root = project({"a/pyproject.toml": '[tool.bubblescope.gate]\nbaseline = "ci/base.json"\n', "a/b/x": ""})
    assert settle(root, file=Path("a/pyproject.toml")).baseline.value == Path("a/ci/base.json")
    assert settle(root / "a").baseline.value == Path("ci/base.json")
    assert settle(root / "a/b").baseline.value == Path("../ci/base.json")
    assert (root / "a/b" / settle(root / "a/b").baseline.value).resolve() == (root / "a/ci/base.json").resolve()
    assert settle(root / "a/b", {"baseline": "x.json"}).baseline.value == Path("x.json")
    assert settle(root / "a/b", {"baseline": Path("x.json")}).baseline.value == Path("x.json")
    assert settle(root / "a/b", None, {"BUBBLESCOPE_GATE_BASELINE": "y.json"}).baseline.value == Path("y.json")
    project({"a/pyproject.toml": f"[tool.bubblescope.gate]\nbaseline = '{root / 'z.json'}'\n"})
    assert settle(root / "a").baseline.value == Path("../z.json")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", True),
        ("true", True),
        ("YES", True),
        (" on\n", True),
        ("0", False),
        ("False", False),
        ("no", False),
        ("off", False),
    ],
)
def test_switches_of_the_environment(tmp_path, text, expected):
    """A switch is a word, large or small."""
    settings = settle(tmp_path, None, {"BUBBLESCOPE_GATE_ALLOW_MISMATCH": text})
    assert (settings.allow_mismatch.value, settings.allow_mismatch.origin) == (
        expected,
        "BUBBLESCOPE_GATE_ALLOW_MISMATCH",
    )


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("fail_on = 'x'", "pyproject.toml has an unknown key 'fail_on' in [tool.bubblescope.gate]", "mean fail-on?"),
        ("fial-on = 'x'", "has an unknown key 'fial-on'", "did you mean fail-on?"),
        ("zzz = 'x'", "has an unknown key 'zzz'", "known: baseline, preset, fail-on"),
        ("'a\\nb' = 1", "has an unknown key 'a\\\\nb'", ""),
        (f"{'k' * 900} = 1", f"has an unknown key '{'k' * 100}...'", ""),
        (
            "fail-on = 3",
            f"fail-on {OF} a string or a list of strings, found the number 3",
            "",
        ),
        ("fail-on = ['a', 3]", "found a list with the number 3 in it", ""),
        ("fail-on = ['a', ['b']]", "found a list with a list in it", ""),
        (
            "warn-on = ''",
            f"warn-on {OF} a string or a list of strings, found an empty string",
            "",
        ),
        ("off = [' ']", "found a list with an empty string in it", ""),
        ("off = {a = 1}", "found a table", ""),
        ("baseline = true", "expects the path of a file, found true", ""),
        ("baseline = ''", "expects the path of a file, found an empty string", ""),
        ('baseline = "a\\u0000b"', "expects the path of a file, found 'a\\x00b'", ""),
        ("preset = 1.5", "expects a string, found the number 1.5", ""),
        ("preset = 1979-05-27", "expects a string, found a date", ""),
        (f"preset = 0x{'f' * 9000}", "expects a string, found a huge number", ""),
        ("on-missing-baseline = 'wran'", "expects fail, warn or pass, found 'wran'", "did you mean warn?"),
        ("on-missing-baseline = 'ignore'", "found 'ignore'", "known: fail, warn, pass"),
        ("on-missing-baseline = ['warn']", "found a list", ""),
        ("allow-mismatch = 'yes'", "expects true or false, found 'yes'", ""),
        ("allow-degraded = 1", "expects true or false, found the number 1", ""),
    ],
)
def test_wrong_values_and_keys_of_a_file(project, text, message, hint):
    """They name the file, the key, what was expected and what was found."""
    with pytest.raises(UsageError) as caught:
        settle(project({"pyproject.toml": f"[tool.bubblescope.gate]\n{text}\n"}))
    assert message in caught.value.message
    assert "pyproject.toml" in caught.value.message
    assert hint in (caught.value.hint or "")
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("name", "text", "message", "hint"),
    [
        ("pyproject.toml", "a = 1\nb =\n", "pyproject.toml is not valid TOML at line 2, column 4: Invalid value", ""),
        ("pyproject.toml", "a = 1\n\nb = [", "at line 3, where it ends", ""),
        ("pyproject.toml", b"a = 1\nb = '\xff'", "pyproject.toml is not valid TOML at line 2: it is not UTF-8", ""),
        ("pyproject.toml", f"a = {'[' * 100_000}", "nested too deeply", ""),
        ("pyproject.toml", f"a = {'9' * 10_000}", "pyproject.toml is not valid TOML: ", ""),
        ("pyproject.toml", "#" * (LARGEST + 1), "pyproject.toml is too large: settings need less than 1 MB", ""),
        ("pyproject.toml", "tool.bubblescope = 3", "must hold a table [tool.bubblescope]", ""),
        ("pyproject.toml", "tool.bubblescope.gate = 3", "must hold a table [tool.bubblescope.gate]", ""),
        ("pyproject.toml", "tool.bubblescope.gaet.x = 3", "key 'gaet' in [tool.bubblescope]", "did you mean gate?"),
        ("pyproject.toml", "tool.bubblescope.off = '3'", "key 'off' in", "put it into [tool.bubblescope.gate]"),
        ("bubblescope.toml", "[gate", "bubblescope.toml is not valid TOML at line 1", ""),
        ("bubblescope.toml", "gate = []", "bubblescope.toml must hold a table [gate]", ""),
        ("bubblescope.toml", "fail_on = 'x'", "unknown key 'fail_on' at the top level", "put it into [gate]"),
        ("bubblescope.toml", "[tool.bubblescope.gate]", "unknown key 'tool'", "its table is [gate]"),
        ("bubblescope.toml", "[gates]", "unknown key 'gates'", "did you mean gate?"),
        ("bubblescope.toml", "[gate]\nof = 'x'", "unknown key 'of' in [gate]", "did you mean off?"),
    ],
)
def test_wrong_files(project, name, text, message, hint):
    """A file that is no TOML says in which line, and a table that is elsewhere says where it belongs."""
    with pytest.raises(UsageError) as caught:
        settle(project({name: text}))
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    "text",
    [
        "a." * 400_000 + "a = 1",
        "[" + "a." * 400_000 + "a]",
        '"\\"" . ' * 140_000 + "a = 1",
        "'a b'\t.\t" * 120_000,
    ],
)
def test_endless_keys_take_no_time(project, text):
    """A key of very many parts is refused before the reader of TOML spends hours on it."""
    directory, start = project({"pyproject.toml": text}), time.monotonic()
    with pytest.raises(UsageError, match="100 parts"):
        settle(directory)
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("text", ['"' * 900_000, 'a = "' + '\\"' * 450_000, ("a." * 98 + "a\n") * 4000, "-" * 900_000])
def test_looking_for_endless_keys_takes_no_time(project, text):
    """Nor does the search for them, whatever the file holds."""
    directory, start = project({"pyproject.toml": text}), time.monotonic()
    with pytest.raises(UsageError, match="not valid TOML"):
        settle(directory)
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(
    ("environment", "message", "hint"),
    [
        (
            {"BUBBLESCOPE_GATE_FAILON": "x"},
            "no setting has the variable BUBBLESCOPE_GATE_FAILON",
            "did you mean BUBBLESCOPE_GATE_FAIL_ON?",
        ),
        ({"BUBBLESCOPE_GATE_": "x"}, "no setting has the variable BUBBLESCOPE_GATE_", "known: BUBBLESCOPE_GATE_BASELI"),
        ({"BUBBLESCOPE_GATE_X\n": "x"}, "no setting has the variable 'BUBBLESCOPE_GATE_X\\n'", ""),
        ({"BUBBLESCOPE_GATE_FAIL_ON": ",\n,"}, "BUBBLESCOPE_GATE_FAIL_ON expects a string or a list of strings", ""),
        (
            {"BUBBLESCOPE_GATE_ALLOW_DEGRADED": "maybe"},
            "BUBBLESCOPE_GATE_ALLOW_DEGRADED expects true or false, found 'maybe'",
            "",
        ),
        ({"BUBBLESCOPE_GATE_ON_MISSING_BASELINE": "Pass"}, "expects fail, warn or pass", "did you mean pass?"),
    ],
)
def test_wrong_variables(tmp_path, environment, message, hint):
    """They name the variable."""
    with pytest.raises(UsageError) as caught:
        settle(tmp_path, None, environment)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("stated", "message", "hint"),
    [
        ({"fail-no": 1}, "no setting is called 'fail-no'", "did you mean fail-on?"),
        ({"fail-on": 1}, "--fail-on expects a string or a list of strings, found the number 1", ""),
        ({"fail-on": [None]}, "found a list", ""),
        ({"baseline": ""}, "--baseline expects the path of a file, found an empty string", ""),
        ({"baseline": b"x"}, "--baseline expects the path of a file, found a bytes", ""),
        ({"baseline": "\ud800"}, "--baseline expects the path of a file", ""),
    ],
)
def test_wrong_statements(tmp_path, stated, message, hint):
    """They name the option, also where a caller in Python hands over what no option can."""
    with pytest.raises(UsageError) as caught:
        settle(tmp_path, stated)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


def test_callers_in_python_have_a_name_of_their_own(tmp_path):
    """The origin of what they state, and what an error begins with."""
    settings = settle(tmp_path, {"off": ["x"], "allow_mismatch": True}, origin=lambda _: "evaluate()")
    assert (settings.off.origin, settings.allow_mismatch.value) == ("evaluate()", True)
    with pytest.raises(UsageError, match=re.escape("off of evaluate() expects a string or a list")):
        settle(tmp_path, {"off": 3}, origin=lambda _: "evaluate()")


def test_what_is_replaced_must_be_right_too(project):
    """An error in a file does not wait for the day on which no option hides it."""
    with pytest.raises(UsageError, match="found the number 3"):
        settle(project({"bubblescope.toml": "[gate]\nfail-on = 3\n"}), {"fail-on": "x"}, VARIABLE)


def test_files_that_cannot_be_read(project):
    """A missing file, a directory, a name that none can have, a link to nowhere, a pipe: each says so."""
    root = project({})
    for file, message in (
        ("nope.toml", "cannot read nope.toml: No such file"),
        (".git", "cannot read .git: "),
        ("a\0b", "no file can have that name"),
        ("a\ud800", "no file can have that name"),
        ("x" * 5000, "File name too long"),
    ):
        with pytest.raises(UsageError, match=re.escape(message)):
            settle(root, file=Path(file))
    (root / "pyproject.toml").symlink_to("pyproject.toml")
    with pytest.raises(UsageError, match=r"cannot read pyproject\.toml"):
        settle(root)
    (root / "bubblescope.toml").mkdir()
    with pytest.raises(UsageError, match=r"bubblescope\.toml is not a file"):
        settle(root)


@pytest.mark.skipif(os.name == "nt", reason="no pipes with names")
def test_a_pipe_is_not_waited_for(project):
    """A pipe in the place of a file does not hold the gate up for ever."""
    root = project({})
    os.mkfifo(root / "pyproject.toml")
    with pytest.raises(UsageError, match="is not a file"):
        settle(root)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_forbidden_file(project):
    """A file that is there and must not be read is not passed over."""
    root = project({"pyproject.toml": SHARED})
    (root / "pyproject.toml").chmod(0)
    with pytest.raises(UsageError, match="Permission denied"):
        settle(root)


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters=",\0", exclude_categories=["C"]), min_size=1).filter(
    lambda text: text.strip() == text and text
)
LISTS = st.lists(TEXTS, min_size=1, max_size=3).map(tuple)
STATED = st.fixed_dictionaries(
    {},
    optional={
        "baseline": TEXTS.filter(lambda text: "/" not in text and "\\" not in text).map(Path),
        "preset": TEXTS,
        "fail-on": LISTS,
        "warn-on": LISTS,
        "off": LISTS,
        "on-missing-baseline": st.sampled_from(["fail", "warn", "pass"]),
        "allow-mismatch": st.booleans(),
        "allow-degraded": st.booleans(),
    },
)


def as_toml(value):
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(as_toml, value))}]"
    return '"' + "".join(f"\\U{ord(char):08x}" for char in str(value)) + '"'


def as_variable(value):
    """A value as the environment has it."""
    return "\n".join(value) if isinstance(value, tuple) else str(value)


@given(in_file=STATED, in_environment=STATED, stated=STATED)
def test_the_highest_layer_that_states_a_key_wins(tmp_path_factory, in_file, in_environment, stated):
    """For each key by itself, with its origin; and nothing of the layers below is left."""
    directory = tmp_path_factory.getbasetemp() / "highest"
    directory.mkdir(exist_ok=True)
    lines = ["[gate]", *(f"{key} = {as_toml(value)}" for key, value in in_file.items())]
    (directory / "bubblescope.toml").write_text("\n".join(lines), "utf-8")
    environment = {variable(key): as_variable(value) for key, value in in_environment.items()}
    settings = settle(directory, stated, environment)
    assert values(settings) == {**DEFAULTS, **in_file, **in_environment, **stated}
    assert origins(settings) == {
        **dict.fromkeys(KEYS, "default"),
        **dict.fromkeys(in_file, "bubblescope.toml"),
        **{key: variable(key) for key in in_environment},
        **{key: f"--{key}" for key in stated},
    }


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")))
def test_no_file_raises_anything_else(tmp_path_factory, data):
    """Any bytes are settings or a UsageError."""
    directory = tmp_path_factory.getbasetemp() / "any"
    directory.mkdir(exist_ok=True)
    (directory / "bubblescope.toml").write_bytes(data)
    try:
        settle(directory)
    except UsageError as error:
        assert "bubblescope.toml" in error.message  # noqa: PT017  most bytes raise, some do not


def test_the_page_has_every_key_and_variable():
    """docs/gate.md lists them all, with their defaults, and no other."""
    rows = re.findall(r"^\| `([a-z-]+)` \| .* \| (.*) \|$", GATE_PAGE.split("### Files")[0], re.MULTILINE)
    said = {None: "none", False: "`false`", "fail": "`fail`"}
    assert dict(rows) == {key: said[value] for key, value in DEFAULTS.items()}
    variables = re.findall(r"^\| `(BUBBLESCOPE_GATE_\w+)` \| `([a-z-]+)` \|$", GATE_PAGE, re.MULTILINE)
    assert variables == [(variable(key), key) for key in KEYS]


def test_the_examples_of_the_page_are_settings(project):
    """Both files of docs/gate.md say the same."""
    shared, own = re.findall(r"```toml\n(.*?)```", GATE_PAGE, re.DOTALL)[:2]
    assert tomllib.loads(shared)["tool"]["bubblescope"] == tomllib.loads(own)
    root = project({"pyproject.toml": shared, "own.toml": own})
    assert values(settle(root)) == values(settle(root, file=Path("own.toml"))) != DEFAULTS
