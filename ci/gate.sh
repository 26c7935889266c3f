#!/usr/bin/env bash
# Runs the gate for the action. Its exit code is that of `bubblescope gate`.
#
# GATE_TRACES has one file, directory or glob a line. The other GATE_* are those of action.yml, and may be empty or
# unset. All of it is data: nothing of it is run or expanded by the shell. RUNNER_TEMP is where the JSON goes, and
# GITHUB_OUTPUT, if set, is told the verdict. Outside of GitHub it does as well: GATE_TRACES=traces bash ci/gate.sh
set -euo pipefail

words=()
report=""

# Whatever goes wrong in here is no rule that failed: only the gate itself ends with 1.
trap 'status=$?; if ((status == 1)) && [[ ${code:-} != 1 ]]; then exit 2; fi' EXIT

# tell CODE VERDICT: the outputs of the action; a report that is not there is none.
tell() {
  [[ -f $report ]] || report=""
  if [[ -n ${GITHUB_OUTPUT:-} ]]; then
    printf 'verdict=%s\nexit-code=%s\nreport=%s\n' "$2" "$1" "$report" >>"$GITHUB_OUTPUT" ||
      echo "error: the outputs of the step could not be written" >&2
  fi
}

# refuse FORMAT [TEXT]: end as wrong usage does.
refuse() {
  # shellcheck disable=SC2059  the format is ours
  printf "error: $1\n" "${@:2}" >&2
  tell 2 ""
  exit 2
}

# trim TEXT: the text without space around it, in $trimmed; YAML leaves line ends, and some editors carriage returns.
trim() {
  trimmed=${1#"${1%%[![:space:]]*}"}
  trimmed=${trimmed%"${trimmed##*[![:space:]]}"}
}

# value OPTION TEXT: the option, if the text is not blank.
value() {
  trim "$2"
  [[ -z $trimmed ]] || words+=("$1$trimmed")
}

# lines OPTION TEXT: the option for every line of the text that is not blank; only the lines without an option.
lines() {
  local line
  while IFS= read -r line; do
    value "$1" "$line"
  done <<<"$2"
}

# yes NAME TEXT: whether a switch is on. What is neither true nor false must not pass for false.
yes() {
  case $2 in
    true | True | TRUE) return 0 ;;
    false | False | FALSE | "") return 1 ;;
    *) refuse '%s must be true or false, found %q' "$1" "$2" ;;
  esac
}

# flag NAME TEXT: the switch as it is stated; the settings decide where it is not.
flag() {
  [[ -n $2 ]] || return 0
  if yes "$1" "$2"; then words+=("--$1"); else words+=("--no-$1"); fi
}

lines "" "${GATE_ARGS:-}"
words+=(--no-progress) # before the rest: an option of args that lacks its value must not take the baseline for one
value --baseline= "${GATE_BASELINE:-}"
lines --fail-on= "${GATE_FAIL_ON:-}"
lines --warn-on= "${GATE_WARN_ON:-}"
lines --off= "${GATE_OFF:-}"
value --preset= "${GATE_PRESET:-}"
value --on-missing-baseline= "${GATE_ON_MISSING_BASELINE:-}"
flag allow-mismatch "${GATE_ALLOW_MISMATCH:-}"
flag allow-degraded "${GATE_ALLOW_DEGRADED:-}"
strict=yes
if ! yes fail-on-inconclusive "${GATE_FAIL_ON_INCONCLUSIVE:-true}"; then strict=no; fi
value --junit= "${GATE_JUNIT:-}"
value --markdown= "${GATE_MARKDOWN:-}"

made=$(mktemp -d "${RUNNER_TEMP:-${TMPDIR:-/tmp}}/gate.XXXXXX") || refuse "no temporary folder can be made"
report=$made/gate.json
words+=(--force "--report=$report" --)
before=${#words[@]}
lines "" "${GATE_TRACES:-}"
((${#words[@]} > before)) || refuse "traces must name a file, a directory or a glob"

code=0
"${GATE_COMMAND:-bubblescope}" gate "${words[@]}" || code=$?
if [[ ! -f $report ]]; then # as of --help, or of a Python that breaks: what measured nothing is neither green nor red
  strict=yes
  if ((code < 2)); then refuse 'nothing was gated: bubblescope ended with %s and wrote no report' "$code"; fi
fi
verdict=""
if [[ -f $report ]]; then
  case $code in
    0) verdict=pass ;;
    1) verdict=fail ;;
    4) verdict=inconclusive ;;
  esac
fi
tell "$code" "$verdict"
if ((code == 4)) && [[ $strict == no ]]; then
  echo "The gate could not decide, and fail-on-inconclusive is false."
  exit 0
fi
exit "$code"
