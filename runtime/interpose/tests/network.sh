# Hosts for jobs under MPICH on one machine: network namespaces, or the loopback interface. A script sources this file
# first of all, with its own arguments, and then calls:
#
#   enter_namespace "$@"   enters a user namespace if only that permits network namespaces; starts the script again
#   make_network COUNT     makes the hosts 1 to COUNT, and sets:
#     network_reason       why namespaces are not permitted; empty if the hosts exist
#     network_launch       what stands before each command of a job, an array
#     network_hosts        the options of mpiexec that name the hosts, an array
#     pids                 the processes that hold the namespaces; host 0 is the bridge
#   on HOST COMMAND...     runs a command on a host
#
# Each host has one device, eth0. One more namespace has a bridge, which joins them. MPICH's launcher starts a proxy on
# each host through a remote shell, which is the calling script itself: sourcing this file does it.
# shellcheck shell=bash disable=SC2034

# The remote shell: [-OPTION...] HOST COMMAND. The last part of a host's address is its number.
if [ -n "${HOSTS_PIDS:-}" ]; then
  while [[ ${1:-} == -* ]]; do shift; done
  host=$1
  shift
  read -r -a pids <<<"$HOSTS_PIDS"
  exec nsenter -t "${pids[${host##*.}]}" -n -- sh -c "$*"
fi

network_script=$(realpath "$0")
network_name=$(basename "$0" .sh)
say() { echo "$network_name: $*"; }
fail() {
  say "$*" >&2
  exit 1
}

permits() { unshare "$@" --net true 2>/dev/null; }
enter_namespace() {
  if [ -z "${HOSTS_INSIDE:-}" ] && ! permits && permits --user --map-root-user; then
    HOSTS_INSIDE=yes exec unshare --user --map-root-user "$network_script" "$@"
  fi
}

pids=()
# shellcheck disable=SC2317
clean() {
  ((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true
}
trap clean EXIT
on() { nsenter -t "${pids[$1]}" -n -- "${@:2}"; } # number of a host, command...

# Makes the hosts: number 0 is the bridge. The processes that hold the namespaces end with the script.
make_hosts() { # count
  local host
  for ((host = 0; host <= $1; host++)); do
    unshare --net sleep 3600 &
    pids[host]=$!
  done
  for ((host = 0; host <= $1; host++)); do
    # The namespace is another one than this script's as soon as `unshare` has made it.
    for ((try = 0; try < 100; try++)); do
      [ "$(readlink "/proc/${pids[host]}/ns/net" 2>/dev/null)" = "$(readlink /proc/self/ns/net)" ] || break
      sleep 0.1
    done
    kill -0 "${pids[host]}" 2>/dev/null || return 1
    [ -e "/proc/${pids[host]}/ns/net" ] || return 1
  done
  on 0 ip link add switch type bridge && on 0 ip link set switch up || return 1
  for ((host = 1; host <= $1; host++)); do
    on 0 ip link add "port$host" type veth peer name eth0 netns "${pids[host]}" &&
      on 0 ip link set "port$host" master switch up &&
      on "$host" ip link set lo up &&
      on "$host" ip addr add "10.77.0.$host/24" dev eth0 &&
      on "$host" ip link set eth0 up || return 1
  done
}

make_network() { # count
  local said host list=
  said=$(mktemp)
  if ! command -v ip >/dev/null || ! command -v nsenter >/dev/null; then
    network_reason="ip or nsenter is missing"
  elif ! unshare --net true 2>"$said"; then
    network_reason=$(tail -n 1 "$said")
  elif ! make_hosts "$1" >"$said" 2>&1; then
    network_reason="a network could not be made: $(tail -n 1 "$said")"
  else
    network_reason=
  fi
  rm -f "$said"
  if [ -n "$network_reason" ]; then
    clean
    pids=()
    say "network namespaces are not permitted here ($network_reason); the ranks use TCP over the loopback interface"
    # UCX cannot connect two ranks through the loopback device; libfabric can.
    network_launch=(env MPIR_CVAR_CH4_NETMOD=ofi FI_PROVIDER=tcp FI_TCP_IFACE=lo MPIR_CVAR_NOLOCAL=1)
    network_hosts=()
    return
  fi
  say "$1 network namespaces are the hosts"
  # UCX, which carries MPICH's messages, may only use TCP: it would find that all ranks are on one machine.
  network_launch=(nsenter -t "${pids[1]}" -n -- env UCX_TLS=tcp,self UCX_NET_DEVICES=eth0 "HOSTS_PIDS=${pids[*]}")
  for ((host = 1; host <= $1; host++)); do list+=${list:+,}10.77.0.$host; done
  network_hosts=(-launcher ssh -launcher-exec "$network_script" -hosts "$list")
}
