# Shared by scripts/demo, scripts/test and scripts/lint: what to install, how to build, how long each stage took.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1

# Debian 12 packages. clang is the PTX compiler where no CUDA toolkit is found; node-d3 is in the page of `stitchwork view`.
packages=(git g++ cmake ninja-build pkg-config nlohmann-json3-dev libfmt-dev libcli11-dev libsqlite3-dev
          libopenblas-dev coinor-libcbc-dev zlib1g-dev libjemalloc-dev libboost-dev libonnx-dev libprotobuf-dev node-d3 clang)
# chromium opens the page of `stitchwork view`.
test_packages=(libgtest-dev libgmock-dev libbenchmark-dev chromium)
fuzz_packages=(libclang-rt-14-dev)
lint_packages=(clang-format clang-tidy)
# Qt is only wanted by figures/paint/ and gui/; it is left out under --no-gui. fonts-dejavu-core: figures are set in it.
gui_packages=(qt6-base-dev qt6-svg-dev libgraphviz-dev fonts-dejavu-core)

say() { printf '%s\n' "$*" >&2; }

stage_names=(); stage_seconds=()
stage() {  # stage NAME COMMAND...: runs it, remembers its time, stops the script where it fails
  local name=$1 begin=$SECONDS status=0
  shift
  say "== $name"
  "$@" || status=$?
  stage_names+=("$name"); stage_seconds+=($((SECONDS - begin)))
  if ((status)); then print_stages; say "failed: $name"; exit "$status"; fi
}
print_stages() {
  local i
  say "time per stage:"
  for i in "${!stage_names[@]}"; do say "$(printf '  %-12s %5d s' "${stage_names[$i]}" "${stage_seconds[$i]}")"; done
}

installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# Installs what is missing of the packages named; touches no network when nothing is.
install_missing() {
  local missing=() p
  command -v dpkg-query >/dev/null || { say "not a Debian system: install these yourself: $*"; return 0; }
  for p in "$@"; do installed "$p" || missing+=("$p"); done
  [ ${#missing[@]} -eq 0 ] && return 0
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then as_root=(sudo)
    else
      say "missing packages, and neither root nor sudo here. Run this as root, then start again:"
      say "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
      exit 1
    fi
  fi
  # A fresh machine has no package lists yet: without them neither names nor sizes are known.
  apt-get install -s "${missing[@]}" >/dev/null 2>&1 || "${as_root[@]}" apt-get update -qq
  local bytes count
  read -r count bytes < <(apt-get install -y --no-install-recommends --print-uris "${missing[@]}" 2>/dev/null |
    awk '/^\x27/ {n++; s += $3} END {print n+0, s+0}')
  say "to install: ${missing[*]}"
  say "$(printf '%d packages with what they need, %.0f MB to download; expected: about %d min' "$count" \
    "$(awk "BEGIN {print $bytes / 1e6}")" "$((1 + bytes / 300000000 + count / 150))")"
  # Stale package lists name files that are gone: refresh them once and try again.
  install_now() { DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null; }
  install_now || { "${as_root[@]}" apt-get update -qq && install_now; } || {
    say "apt-get could not install: ${missing[*]} (is the package mirror reachable?)"; return 1; }
}

build() {  # build PRESET [TARGET...]; configures where needed, with cmake_flags
  local preset=$1 targets=() t flag fresh=0
  shift
  for t in "$@"; do targets+=(--target "$t"); done
  [ -f "build/$preset/build.ninja" ] || fresh=1
  for flag in "${cmake_flags[@]}"; do
    t=${flag#-D}
    ((fresh)) || grep -q "^${t%%=*}:BOOL=${t#*=}$" "build/$preset/CMakeCache.txt" || fresh=1
  done
  if ((fresh)); then
    mkdir -p "build/$preset"
    cmake --preset "$preset" "${cmake_flags[@]}" >"build/$preset/configure.log" 2>&1 ||
      { cat "build/$preset/configure.log" >&2; return 1; }
  fi
  cmake --build --preset "$preset" "${targets[@]}"
}

cmake_flags=()
gui=1
