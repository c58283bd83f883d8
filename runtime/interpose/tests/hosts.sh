#!/usr/bin/env bash
# Runs programs under MPICH as jobs over several hosts, with and without typepack's library, and compares what they
# receive, byte by byte.
#
#   runtime/interpose/tests/hosts.sh BUILD MPICH WORK
#
# BUILD is a folder with typepack, mpiexec, libmpi_abi.so and libtypepack_interpose.so, such as target/debug. MPICH is
# the folder of an installed MPICH, such as target/peers/mpich. Programs and results go to the folder WORK.
#
# The hosts are three network namespaces. Each has one device, eth0. A fourth namespace has a bridge, which joins them.
# MPICH's launcher starts a proxy on each host through a remote shell, which is this script itself. Without root, the
# script enters a user namespace first. Where namespaces are not permitted, the script says so, and the ranks of one
# host use TCP over the loopback interface without shared memory.
set -euo pipefail

# The remote shell: [-OPTION...] HOST COMMAND. The last part of a host's address is its number.
if [ -n "${HOSTS_PIDS:-}" ]; then
  while [[ ${1:-} == -* ]]; do shift; done
  host=$1
  shift
  read -r -a pids <<<"$HOSTS_PIDS"
  exec nsenter -t "${pids[${host##*.}]}" -n -- sh -c "$*"
fi

self=$(realpath "$0")
build=$(realpath "$1") mpich=$(realpath "$2")
mkdir -p "$3"
work=$(realpath "$3")
folder=$(dirname "$self")
limit=(timeout -k 5 900)
say() { echo "hosts: $*"; }
fail() {
  say "$*" >&2
  exit 1
}

# Enters a user namespace if only that permits network namespaces.
permits() { unshare "$@" --net true 2>/dev/null; }
if [ -z "${HOSTS_INSIDE:-}" ] && ! permits && permits --user --map-root-user; then
  HOSTS_INSIDE=yes exec unshare --user --map-root-user "$self" "$build" "$mpich" "$work"
fi

pids=()
# shellcheck disable=SC2317
clean() {
  ((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true
}
trap clean EXIT
on() { nsenter -t "${pids[$1]}" -n -- "${@:2}"; } # number of a host, command...

# Makes the hosts: number 0 is the bridge. The processes that hold the namespaces end with this script.
make_hosts() {
  local host
  for host in 0 1 2 3; do
    unshare --net sleep 3600 &
    pids[host]=$!
  done
  for host in 0 1 2 3; do
    # The namespace is another one than this script's as soon as `unshare` has made it.
    for ((try = 0; try < 100; try++)); do
      [ "$(readlink "/proc/${pids[host]}/ns/net" 2>/dev/null)" = "$(readlink /proc/self/ns/net)" ] || break
      sleep 0.1
    done
    kill -0 "${pids[host]}" 2>/dev/null || return 1
    [ -e "/proc/${pids[host]}/ns/net" ] || return 1
  done
  on 0 ip link add switch type bridge && on 0 ip link set switch up || return 1
  for host in 1 2 3; do
    on 0 ip link add "port$host" type veth peer name eth0 netns "${pids[host]}" &&
      on 0 ip link set "port$host" master switch up &&
      on "$host" ip link set lo up &&
      on "$host" ip addr add "10.77.0.$host/24" dev eth0 &&
      on "$host" ip link set eth0 up || return 1
  done
}

if ! command -v ip >/dev/null || ! command -v nsenter >/dev/null; then
  reason="ip or nsenter is missing"
elif ! unshare --net true 2>"$work/reason"; then
  reason=$(tail -n 1 "$work/reason")
elif ! make_hosts >"$work/reason" 2>&1; then
  reason="a network could not be made: $(tail -n 1 "$work/reason")"
else
  reason=
fi

# UCX, which carries MPICH's messages, gets no other transport than TCP: it would find that all ranks are on one
# machine.
variables=(UCX_TLS=tcp,self)
if [ -n "$reason" ]; then
  clean
  pids=()
  say "network namespaces are not permitted here ($reason); the ranks use TCP over the loopback interface"
  # UCX cannot connect two ranks through the loopback device; libfabric can.
  variables=(MPIR_CVAR_CH4_NETMOD=ofi FI_PROVIDER=tcp FI_TCP_IFACE=lo MPIR_CVAR_NOLOCAL=1)
  launch=(env "${variables[@]}")
  hosts=()
else
  say "three network namespaces are the hosts"
  # UCX, which carries MPICH's messages, may only use TCP: it would find that all ranks are on one machine.
  variables=(UCX_TLS=tcp,self UCX_NET_DEVICES=eth0 HOSTS_PIDS="${pids[*]}")
  launch=(nsenter -t "${pids[1]}" -n -- env "${variables[@]}")
  hosts=(-launcher ssh -launcher-exec "$self" -hosts "10.77.0.1,10.77.0.2,10.77.0.3")
fi
# MPICH's launcher with the options that name the hosts.
mpiexec=("$mpich/bin/mpiexec" "${hosts[@]}")

compile() { # source, program: one program for all libraries with the ABI
  "$mpich/bin/mpicc_abi" -std=gnu11 -O1 -Wall -Wextra -Werror "$1" -o "$work/$2"
}
compile "$folder/c/hosts.c" exchanges
compile "$folder/../../examples/c/halo.c" halo

# Runs a command and keeps its standard output, sorted, because the lines of the ranks come in any order.
sorted() { # name, command...
  local name=$1
  shift
  "${limit[@]}" "${launch[@]}" "$@" >"$work/$name.out" 2>"$work/$name.err" ||
    { cat "$work/$name.out" "$work/$name.err" >&2 && fail "$name: $* failed"; }
  sort -o "$work/$name.out" "$work/$name.out"
}
# Returns a number of the table of TYPEPACK_REPORT.
counted() { sed -n "s/.*$2 *\([0-9]*\)\$/\1/p" "$work/$1.err" | head -n 1; }
# Fails unless the library has done calls in a job.
worked() {
  (($(counted "$1" "calls done by typepack") > 0)) || { cat "$work/$1.err" >&2 && fail "$1: typepack did no call"; }
}

sorted halo-plain "${mpiexec[@]}" -n 3 "$work/halo"
sorted halo-all "$build/typepack" run --all --report -- "${mpiexec[@]}" -n 3 "$work/halo"
worked halo-all
# The same program on typepack's own library, on one machine.
mkdir -p "$work/lib"
ln -sf "$build/libmpi_abi.so" "$work/lib/libmpi_abi.so.1"
export LD_LIBRARY_PATH=$work/lib
"${limit[@]}" "$build/mpiexec" -n 3 "$work/halo" >"$work/halo-own.out" 2>"$work/halo-own.err" ||
  { cat "$work/halo-own.err" >&2 && fail "halo failed on typepack's own library"; }
unset LD_LIBRARY_PATH
sort -o "$work/halo-own.out" "$work/halo-own.out"
for other in all own; do
  cmp "$work/halo-plain.out" "$work/halo-$other.out" || fail "halo: the output differs ($other)"
done
say "halo: the same output under MPICH, under MPICH with typepack, and on typepack's own library"

compare() { # name, number of ranks
  local rank
  for ((rank = 0; rank < $2; rank++)); do
    cmp "$work/plain.$rank" "$work/$1.$rank" || fail "exchanges: rank $rank received other bytes ($1)"
  done
  rm "$work/$1".[0-9]*
}
library=$build/libtypepack_interpose.so
# With six ranks, each host has two.
for ranks in 3 6; do
  job=("${mpiexec[@]}" -n "$ranks" "$work/exchanges")
  sorted exchanges-plain "${job[@]}" "$work/plain"
  for mode in "" --all; do
    # shellcheck disable=SC2086
    sorted "exchanges$mode" "$build/typepack" run --report $mode -- "${job[@]}" "$work/on"
    worked "exchanges$mode"
    compare on "$ranks"
  done
  # Rank 0 has the library, and the others have not.
  one=(-n 1 -env LD_PRELOAD "$library" -env TYPEPACK_REPORT 1 "$work/exchanges" "$work/on")
  others=(-n "$((ranks - 1))" "$work/exchanges" "$work/on")
  sorted exchanges-some "${mpiexec[@]}" "${one[@]}" : "${others[@]}"
  worked exchanges-some
  compare on "$ranks"
  say "exchanges on $ranks ranks: the same bytes without typepack, with it, with --all, and on rank 0 alone"
  rm "$work/plain".[0-9]*
done

# The messages have passed through the devices: a rank receives some four million packed bytes in each
# run of the exchanges.
if [ ${#pids[@]} -gt 0 ]; then
  for host in 1 2 3; do
    bytes=$(on "$host" ip -s link show eth0 | awk '/RX:/ { getline; print $1 }')
    ((bytes > 8000000)) || fail "host $host has received only $bytes bytes through its device"
  done
  say "host 1 has received $(on 1 ip -s link show eth0 | awk '/RX:/ { getline; print $1 }') bytes through its device"
fi
