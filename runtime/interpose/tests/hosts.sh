#!/usr/bin/env bash
# Runs programs under MPICH as jobs over several hosts, with and without typepack's library, and compares what they
# receive, byte by byte.
#
#   runtime/interpose/tests/hosts.sh BUILD MPICH WORK
#
# BUILD is a folder with typepack, mpiexec, libmpi_abi.so and libtypepack_interpose.so, such as target/debug. MPICH is
# the folder of an installed MPICH, such as target/peers/mpich. Programs and results go to the folder WORK.
#
# The hosts are three network namespaces, which network.sh makes. Without root, the script first enters a user
# namespace. Where namespaces are not permitted, the script says so, and the ranks of one host use TCP over the loopback interface
# without shared memory.
set -euo pipefail

# The remote shell of MPICH's launcher is the script itself.
# shellcheck source=runtime/interpose/tests/network.sh
source "$(dirname "$(realpath "$0")")/network.sh"

enter_namespace "$@"
build=$(realpath "$1") mpich=$(realpath "$2")
mkdir -p "$3"
work=$(realpath "$3")
folder=$(dirname "$(realpath "$0")")
limit=(timeout -k 5 900)
make_network 3
launch=("${network_launch[@]}")
# MPICH's launcher with the options that name the hosts.
mpiexec=("$mpich/bin/mpiexec" "${network_hosts[@]}")

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
