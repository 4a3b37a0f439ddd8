#!/usr/bin/env bash
# Installs what is missing, builds and runs the tests.
#   scripts/test.sh [PRESET...]    of CMakePresets.json; without one: dev and release
# Stops at the first preset that fails.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source-path=SCRIPTDIR source=dependencies.sh
source "$root/scripts/dependencies.sh"

presets=("$@")
if [[ ${#presets[@]} -eq 0 ]]; then presets=(dev release); fi

ensure_packages "${build_packages[@]}" "${test_packages[@]}"
cd -- "$root"
for preset in "${presets[@]}"; do
  say "building $preset"
  build_preset "$preset"
done
for preset in "${presets[@]}"; do
  say "testing $preset"
  ctest --preset "$preset" --parallel "$(build_jobs)"
done
