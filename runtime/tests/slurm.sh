#!/usr/bin/env bash
# Runs programs of typepack under a real Slurm of one node, which this script starts in namespaces of its own. Debian's packages
# are downloaded and unpacked into target/slurm; nothing is installed, and no service is left. Needs root and the network; where
# something of that is missing, the script says so and exits with code 77.
#
#   runtime/tests/slurm.sh PROGRAM [ARGUMENT...]     srun --mpi=pmi2 -n RANKS PROGRAM (RANKS is 4 unless it is set)
set -euo pipefail
cd "$(dirname "$0")/../.."
[ $# -gt 0 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 2; }
[ "$(id -u)" = 0 ] || { echo "slurm: skipped: not root" >&2; exit 77; }
command -v ip >/dev/null || { echo "slurm: skipped: no program ip (iproute2)" >&2; exit 77; }
unshare --mount --net --pid --fork --mount-proc true 2>/dev/null || { echo "slurm: skipped: the system permits no namespaces" >&2; exit 77; }
folder=$PWD/target/slurm
if [ ! -e "$folder/root/usr/sbin/slurmstepd" ]; then
  mkdir -p "$folder/archives/partial" "$folder/root"
  apt-get -y -qq -o Dir::Cache="$folder" -o Dir::Cache::archives="$folder/archives" --no-install-recommends \
    --download-only install slurm-wlm munge >/dev/null || { echo "slurm: skipped: no packages" >&2; exit 77; }
  for package in "$folder"/archives/*.deb; do dpkg -x "$package" "$folder/root"; done
  ln -sf slurmstepd-wlm "$folder/root/usr/sbin/slurmstepd"
fi
place=$(mktemp -d)
child=
trap '[ -z "$child" ] || kill -KILL "$child" 2>/dev/null || true; rmdir "$place"' EXIT
trap 'exit 143' HUP INT TERM
# A network of its own: Slurm's ports are its own, and nobody outside reaches its services.
unshare --mount --net --pid --fork --kill-child --mount-proc bash -c '
set -eu
folder=$1 place=$2 ranks=$3; shift 3
mount --make-rprivate /
ip link set lo up
# Slurm looks up only addresses of families of which the machine has another address than 127.0.0.1.
ip address add 192.0.2.1/32 dev lo
mount -t overlay overlay -o "lowerdir=$folder/root/usr:/usr" /usr
mount -t tmpfs tmpfs $place; mkdir $place/state $place/spool
host=$(hostname -s)
{ cat /etc/hosts; echo "127.0.0.1 $host"; } >$place/hosts; mount --bind $place/hosts /etc/hosts
head -c 128 /dev/urandom >$place/munge.key; chmod 600 $place/munge.key
munged --force --key-file=$place/munge.key --socket=$place/munge.sock --pid-file=$place/munge.pid \
  --log-file=$place/munge.log --seed-file=$place/munge.seed >$place/out 2>&1
cat >$place/slurm.conf <<C
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=26817
SlurmdPort=26818
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$place/munge.sock
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SlurmctldPidFile=$place/ctld.pid
SlurmdPidFile=$place/slurmd.pid
SlurmdSpoolDir=$place/spool
StateSaveLocation=$place/state
SlurmctldLogFile=$place/ctld.log
SlurmdLogFile=$place/slurmd.log
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
MpiDefault=none
NodeName=$host NodeAddr=127.0.0.1 CPUs=64 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
C
export SLURM_CONF=$place/slurm.conf
slurmctld-wlm >>$place/out 2>&1
slurmd-wlm >>$place/out 2>&1
for try in $(seq 60); do [ "$(timeout 2 sinfo -h -o %T 2>>$place/out)" = idle ] && break; sleep 0.2; done
timeout 3 sinfo -h >/dev/null || { cat $place/out $place/*.log >&2; exit 1; }
code=0; timeout 120 srun --mpi=pmi2 -n "$ranks" "$@" || code=$?
exit $code' _ "$folder" "$place" "${RANKS:-4}" "$@" <&0 &
child=$!
code=0; wait "$child" || code=$?
child=
exit "$code"
