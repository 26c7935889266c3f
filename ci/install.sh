#!/usr/bin/env bash
# Installs bubblescope for the action, in an environment of its own, and tells the next step where the command is.
#
# Reads GATE_PYTHON and GATE_VERSION, which may be empty, and GITHUB_ACTION_PATH, RUNNER_TEMP, GITHUB_OUTPUT.
# It never ends with 1, which says that a rule failed.
set -euo pipefail

refuse() {
  echo "::error title=Nothing was gated::$1"
  exit 2
}

trap 'status=$?; if ((status == 1)); then exit 2; fi' EXIT

: "${GITHUB_ACTION_PATH:?}" "${RUNNER_TEMP:?}" "${GITHUB_OUTPUT:?}"
what=$GITHUB_ACTION_PATH
if [[ -n ${GATE_VERSION:-} ]]; then
  [[ $GATE_VERSION =~ ^[0-9A-Za-z.!+-]+$ ]] || refuse "The version of bubblescope must be one as 0.1.0."
  what=bubblescope==$GATE_VERSION
fi

home=$(mktemp -d "$RUNNER_TEMP/bubblescope.XXXXXX")
# -I: what lies in the working directory is not Python's.
"${GATE_PYTHON:-python3}" -I -m venv "$home" || refuse "No environment could be made: is the input python right?"
place=$home/bin
[[ -d $place ]] || place=$home/Scripts # Windows
"$place/python" -I -m pip install --quiet --disable-pip-version-check "$what" || refuse "bubblescope could not be installed."
printf 'command=%s\n' "$place/bubblescope" >>"$GITHUB_OUTPUT"
