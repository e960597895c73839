#!/usr/bin/env bash
# Installs the OpenID clients that the tests drive: Debian's with apt where this is root, npm's and Python's
# beside the tests. What is there already is left alone. Arguments are the Python environments to build, and
# nothing else.
set -euo pipefail
cd "$(dirname "$0")/../.."

here=tests/oidc_clients
environments=.venv/oidc-clients

# Debian keeps programs there that root runs.
PATH="$PATH:/usr/sbin"

has() { command -v "$1" > /dev/null; }

lists=("$here"/requirements/*.txt)
if [ "$#" -gt 0 ]; then
  lists=("${@/#/$here/requirements/}")
  lists=("${lists[@]/%/.txt}")
fi

if [ "$#" -eq 0 ]; then
  debian=()
  has node || debian+=(nodejs)
  has npm || debian+=(npm)
  # The server alone: the package `apache2` would start one.
  has apache2 || debian+=(apache2-bin)
  [ -e /usr/lib/apache2/modules/mod_auth_openidc.so ] || debian+=(libapache2-mod-auth-openidc)
  has oidc-agent || debian+=(oidc-agent-cli)
  if [ "${#debian[@]}" -gt 0 ]; then
    if [ "$(id -u)" -eq 0 ] && has apt-get; then
      echo "installing ${debian[*]}"
      export DEBIAN_FRONTEND=noninteractive
      apt-get update -qq
      apt-get install -qq --yes --no-install-recommends "${debian[@]}" > /dev/null
    else
      echo "left out, as this is not root on Debian: ${debian[*]}" >&2
    fi
  fi

  if has npm && ! cmp -s "$here/package-lock.json" "$here/node_modules/.installed"; then
    echo "installing the clients for Node"
    npm ci --prefix "$here" --ignore-scripts --no-audit --no-fund
    cp "$here/package-lock.json" "$here/node_modules/.installed"
  fi
fi

for list in "${lists[@]}"; do
  environment="$environments/$(basename "$list" .txt)"
  if ! cmp -s "$list" "$environment/installed"; then
    echo "building $environment"
    "${PYTHON:-python3}" -m venv --clear "$environment"
    "$environment/bin/python" -m pip install --quiet --no-deps --requirement "$list"
    cp "$list" "$environment/installed"
  fi
done
