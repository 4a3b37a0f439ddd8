#!/usr/bin/env bash
# From a fresh Debian 12 to measured kernels: installs what is missing, builds, and runs the main job.
#   scripts/quickstart.sh [ARGUMENT...]    the arguments go to `memwall measure llama-3.2-1b`
# Standard output holds the results alone. Arguments that cannot be right are refused before anything is installed
# or built.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source-path=SCRIPTDIR source=dependencies.sh
source "$root/scripts/dependencies.sh"
# shellcheck source-path=SCRIPTDIR source=measure_arguments.sh
source "$root/scripts/measure_arguments.sh"

check_measure_arguments "$root" "$@"
ensure_packages "${build_packages[@]}"
(cd -- "$root" && build_preset default -DMEMWALL_BUILD_TESTS=OFF) >&2

command=("$root/build/default/memwall" measure llama-3.2-1b "$@")
say "running: ${command[*]}"
exec "${command[@]}"
