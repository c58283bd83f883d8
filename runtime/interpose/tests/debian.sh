#!/usr/bin/env bash
# Unpacks Debian's MPICH, or its Open MPI, into a folder. The tests of the shim use them as libraries without the MPI 5
# standard ABI, and typepack-bench uses both because they have Fortran. Nothing is installed: the packages are fetched by
# apt-get and unpacked by dpkg, without root.
#
#   runtime/interpose/tests/debian.sh [mpich|openmpi]     mpich unless named; the folder is target/peers/debian-NAME
#
# FOLDER/bin/mpicc and mpifort compile programs that find the unpacked libraries, FOLDER/bin/mpiexec starts them.
set -euo pipefail
cd "$(dirname "$0")/../../.."
name=${1:-mpich}
# The packages, and the libraries on which they depend and which scripts/setup does not install.
case $name in
mpich) packages="mpich libmpich12 libmpich-dev libucx0 libslurm38 hwloc-nox" ;;
openmpi)
  packages="openmpi-bin openmpi-common libopenmpi3 libopenmpi-dev libevent-core-2.1-7 libevent-pthreads-2.1-7 libpmix2 libmunge2"
  ;;
*) echo "debian.sh: unknown library '$name' (allowed: mpich, openmpi)" >&2; exit 2 ;;
esac
folder=target/peers/debian-$name
[ ! -x "$folder/bin/mpifort" ] || exit 0
command -v apt-get >/dev/null && command -v dpkg >/dev/null || { echo "debian.sh: this system has no apt-get" >&2; exit 1; }
echo "debian.sh: fetching Debian's $name into $folder"
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
rm -rf "$folder/new"
mkdir -p "$folder/new/packages" "$folder/bin"
fetch() { (cd "$folder/new/packages" && apt-get -qq -o APT::Sandbox::User=root download $packages) >/dev/null; }
# A new system has no lists of packages yet.
fetch || { [ "$(id -u)" = 0 ] && apt-get -qq update && fetch; }
for package in "$folder"/new/packages/*.deb; do dpkg -x "$package" "$folder/new/root"; done
rm -rf "$folder/new/packages" "$folder/root"
mv "$folder/new/root" "$folder/root"
rmdir "$folder/new"
root=$folder/root/usr
lib=$(cd "$root/lib" && echo */fortran)
lib=$root/lib/${lib%/*}
# The libraries need others of the folder, which only DT_RPATH makes them find.
wrapper() { # NAME COMMAND...: writes FOLDER/bin/NAME
  printf '#!/bin/sh\nexec %s "$@" %s\n' "$2" "${3:-} -Wl,-rpath,$lib -Wl,--disable-new-dtags" >"$folder/bin/$1"
  chmod +x "$folder/bin/$1"
}
if [ "$name" = mpich ]; then
  # The scripts of the package, with the paths of the folder.
  for tool in mpicc mpifort; do
    sed "s|=/usr|=$root|" "$root/bin/$tool.mpich" >"$root/bin/$tool"
    wrapper "$tool" "bash $root/bin/$tool"
  done
  launch="$root/bin/mpiexec.hydra"
else
  wrapper mpicc "cc -I$lib/openmpi/include" "-L$lib/openmpi/lib -lmpi"
  modules=$(dirname "$(find "$lib/fortran" -name mpi_f08.mod)")
  wrapper mpifort "gfortran -I$lib/openmpi/include -I$modules" \
    "-L$lib/openmpi/lib -lmpi_usempif08 -lmpi_usempi_ignore_tkr -lmpi_mpifh -lmpi"
  # Modules for networks do not find their libraries.
  launch="OPAL_PREFIX=$root PMIX_INSTALL_PREFIX=$lib/pmix2 OMPI_MCA_mca_base_component_show_load_errors=0"
  launch+=" PMIX_MCA_pcompress_base_silence_warning=1 OMPI_MCA_mca_base_component_path=$lib/openmpi/lib/openmpi3 $root/bin/orterun"
fi
cat >"$folder/bin/mpiexec" <<END
#!/bin/sh
exec env LD_LIBRARY_PATH=$lib $launch "\$@"
END
chmod +x "$folder/bin/mpiexec"
