#!/usr/bin/env bash
# Formats the sources with clang-format (Debian 12's, version 14); --check changes nothing and fails on a
# difference.
set -euo pipefail

cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
mode=(-i)
case "${1:-}" in
  "") ;;
  --check) mode=(-n -Werror) ;;
  *)
    echo "usage: scripts/format.sh [--check]" >&2
    exit 2
    ;;
esac

directories=()
for directory in src kernels tests fuzz bench; do
  if [[ -d $directory ]]; then directories+=("$directory"); fi
done
find "${directories[@]}" -type f \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
  xargs -0 -r "${CLANG_FORMAT:-clang-format}" "${mode[@]}"
