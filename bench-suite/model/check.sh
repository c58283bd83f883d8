#!/usr/bin/env bash
# Compares the predictions of `typepack-bench model` with halo exchanges over networks of limited bandwidth.
#
#   bench-suite/model/check.sh BUILD MPICH WORK [EDGE WIDTH ELEMENT FIELDS [RATE...]]
#
# BUILD is a folder with typepack, typepack-bench and libtypepack_interpose.so, such as target/release. MPICH is the
# folder of an installed MPICH, such as target/peers/mpich. The program and its outputs go to the folder WORK. RATE is
# a bandwidth for tc, such as 1gbit, or `full` for no limit; by default full, 2gbit and 200mbit. By default, the halo is
# 128 1 8 1.
#
# Two network namespaces are the hosts, as in runtime/interpose/tests/hosts.sh, and each has one rank. `tc` limits what
# leaves a host. For each rate, halo.c runs under MPICH alone and behind typepack's library, three times in turn. The
# least of three times counts, because other processes on the machine only make times longer. Where namespaces or tc are
# not permitted, the script says so, and the two ranks use TCP over the loopback interface without a limit.
set -euo pipefail

# The remote shell of MPICH's launcher is the script itself.
# shellcheck source=runtime/interpose/tests/network.sh
source "$(dirname "$(realpath "$0")")/../../runtime/interpose/tests/network.sh"

(($# >= 3)) || { sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
enter_namespace "$@"
build=$(realpath "$1") mpich=$(realpath "$2")
mkdir -p "$3"
work=$(realpath "$3")
source=$(realpath "$(dirname "$0")/halo.c")
halo=(128 1 8 1)
rates=(full 2gbit 200mbit)
if (($# > 3)); then
  (($# >= 7)) || fail "EDGE WIDTH ELEMENT FIELDS: all four numbers are necessary"
  halo=("${@:4:4}")
fi
(($# < 8)) || rates=("${@:8}")

make_network 2
if [ -z "$network_reason" ] && ! command -v tc >/dev/null; then
  say "tc is missing (Debian's package iproute2); the bandwidth is not limited"
  rates=(full)
elif [ -n "$network_reason" ]; then
  rates=(full)
fi
"$mpich/bin/mpicc_abi" -std=gnu11 -O2 -Wall -Wextra -Werror "$source" -o "$work/halo"

# Limits what leaves each host.
limit() { # rate
  local host
  [ -z "$network_reason" ] || return 0
  for host in 1 2; do
    on "$host" tc qdisc del dev eth0 root 2>/dev/null || true
    [ "$1" = full ] || on "$host" tc qdisc add dev eth0 root tbf rate "$1" burst 32kb latency 50ms || return 1
  done
}
job() { # output, command before mpiexec...
  timeout -k 5 300 "${network_launch[@]}" "${@:2}" "$mpich/bin/mpiexec" "${network_hosts[@]}" -n 2 "$work/halo" \
    "${halo[@]}" >"$1" 2>"$1.err" || { cat "$1" "$1.err" >&2 && fail "a job failed: ${*:2}"; }
}
# Keeps the least value of each word.
least() { # name
  cat "$work/$1".[123] | awk '!($1 in v) { order[n++] = $1; v[$1] = $2 } $2 < v[$1] { v[$1] = $2 }
    END { for (i = 0; i < n; i++) print order[i], v[order[i]] }' >"$work/$1"
}

compare=()
for rate in "${rates[@]}"; do
  limit "$rate" || { say "tc does not set $rate here; this rate is left out" && continue; }
  for try in 1 2 3; do
    job "$work/$rate.$try"
    job "$work/$rate-typepack.$try" "$build/typepack" run --all --report --
    (($(sed -n 's/.*calls done by typepack *\([0-9]*\)$/\1/p' "$work/$rate-typepack.$try.err" | head -n 1) > 0)) ||
      { cat "$work/$rate-typepack.$try.err" >&2 && fail "typepack did no call"; }
  done
  least "$rate"
  least "$rate-typepack"
  compare+=(--compare "$work/$rate" "$work/$rate-typepack")
done
((${#compare[@]} > 0)) || fail "no rate could be measured"
"$build/typepack-bench" model "${compare[@]}"
