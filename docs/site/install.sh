#!/usr/bin/env bash
# Installs what builds the site, in an environment of its own. What is there already is left alone.
set -euo pipefail
cd "$(dirname "$0")/../.."

list=docs/site/requirements.txt
environment=.venv/docs-site

export PIP_DISABLE_PIP_VERSION_CHECK=1
if ! cmp -s "$list" "$environment/installed"; then
  echo "building $environment"
  "${PYTHON:-python3}" -m venv --clear "$environment"
  "$environment/bin/python" -m pip install --quiet --no-deps --requirement "$list"
  cp "$list" "$environment/installed"
fi
