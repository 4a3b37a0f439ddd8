# shellcheck shell=bash
# Sourced by quickstart.sh, test.sh and fuzz.sh: what memwall is built from, and getting it on Debian.

# shellcheck disable=SC2034 # the scripts that source this use them
build_packages=(
  g++ cmake ninja-build
  libyaml-cpp-dev libcli11-dev libfmt-dev nlohmann-json3-dev rapidjson-dev libopenblas0 libhwy-dev
  libhwloc-dev
)
# shellcheck disable=SC2034
test_packages=(libgtest-dev libgmock-dev libbenchmark-dev)  # the release preset builds bench/
# shellcheck disable=SC2034
fuzz_packages=(clang libclang-rt-dev)

say() { printf '%s: %s\n' "$(basename -- "$0")" "$*" >&2; }

# Those of the named Debian packages that are not installed, one a line.
missing_packages() {
  local package
  for package in "$@"; do
    # One line an architecture; a removed package that left its configuration is not "installed".
    dpkg-query --show --showformat='${db:Status-Status}\n' "$package" 2>/dev/null | grep -x installed >/dev/null ||
      printf '%s\n' "$package"
  done
}

# Installs those of the named Debian packages that are missing.
ensure_packages() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "not a Debian system: nothing is installed. memwall needs a C++20 compiler, CMake 3.25, and"
    say "yaml-cpp, CLI11, fmt, nlohmann-json, RapidJSON, Highway, hwloc and, to measure, a BLAS with the C interface (OpenBLAS);"
    say "its tests need GoogleTest with GoogleMock, its benchmarks Google Benchmark, its fuzzers clang. In Debian's names: $*"
    return 0
  fi
  local missing
  mapfile -t missing < <(missing_packages "$@")
  if [[ ${#missing[@]} -eq 0 ]]; then
    say "all $# packages are installed"
    return 0
  fi
  local apt_get=(env DEBIAN_FRONTEND=noninteractive apt-get -q)
  if [[ $(id -u) -ne 0 ]]; then
    if ! command -v sudo >/dev/null; then
      say "these packages are missing, and installing them needs root (there is no sudo): ${missing[*]}"
      return 1
    fi
    apt_get=(sudo "${apt_get[@]}")
  fi
  say "installing: ${missing[*]}"
  "${apt_get[@]}" update </dev/null >&2 || say "apt-get update failed; trying with the package lists at hand"
  "${apt_get[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null >&2
}

# How many compilers to run at once: one a core, each with 1.5 GiB of memory.
build_jobs() {
  local cores memory_kib limit jobs
  cores=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
  jobs=$cores
  if [[ -r /proc/meminfo ]]; then
    memory_kib=$(awk '$1 == "MemAvailable:" {print $2}' /proc/meminfo)
    limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)  # a container's, in bytes
    if [[ $limit != max ]] && ((limit / 1024 < ${memory_kib:-0})); then memory_kib=$((limit / 1024)); fi
    if [[ -n $memory_kib ]] && ((memory_kib / 1572864 < jobs)); then jobs=$((memory_kib / 1572864)); fi
  fi
  echo $((jobs > 1 ? jobs : 1))
}

# build_preset PRESET [CMAKE ARGUMENT...]: configures and builds it, with Ninja where there is one.
# The working directory must be the source tree.
build_preset() {
  local preset=$1
  shift
  if ! command -v cmake >/dev/null; then
    say "there is no cmake"
    return 1
  fi
  if [[ -z ${CMAKE_GENERATOR:-} ]] && command -v ninja >/dev/null; then export CMAKE_GENERATOR=Ninja; fi
  cmake --preset "$preset" "$@"
  cmake --build --preset "$preset" --parallel "$(build_jobs)"
}
