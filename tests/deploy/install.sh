#!/usr/bin/env bash
# Installs what reads compose.yaml and the manifests of Kubernetes in the tests, in an environment of its own. What is
# there already is left alone.
set -euo pipefail
cd "$(dirname "$0")/../.."

list=tests/deploy/requirements.txt
environment=.venv/deploy-tools

export PIP_DISABLE_PIP_VERSION_CHECK=1
if ! cmp -s "$list" "$environment/installed"; then
  echo "building $environment"
  "${PYTHON:-python3}" -m venv --clear "$environment"
  "$environment/bin/python" -m pip install --quiet --no-deps --requirement "$list"
  cp "$list" "$environment/installed"
fi
