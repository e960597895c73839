#!/usr/bin/env bash
# Installs what reads the OpenAPI document in the tests: npm's tools beside the tests, Python's each in an
# environment of its own. And what builds the TypeScript client and the sign-in element. What is there already
# is left alone.
set -euo pipefail
cd "$(dirname "$0")/../.."

here=tests/clients
environments=.venv/client-tools

if command -v npm > /dev/null; then
  for folder in "$here" contrib/clients/signin contrib/clients/typescript; do
    if ! cmp -s "$folder/package-lock.json" "$folder/node_modules/.installed"; then
      echo "installing the tools of $folder"
      npm ci --prefix "$folder" --ignore-scripts --no-audit --no-fund
      cp "$folder/package-lock.json" "$folder/node_modules/.installed"
    fi
  done
else
  echo "left out, as there is no npm: the tools for Node" >&2
fi

for list in "$here"/requirements/*.txt; do
  environment="$environments/$(basename "$list" .txt)"
  if ! cmp -s "$list" "$environment/installed"; then
    echo "building $environment"
    "${PYTHON:-python3}" -m venv --clear "$environment"
    "$environment/bin/python" -m pip install --quiet --no-deps --requirement "$list"
    cp "$list" "$environment/installed"
  fi
done
