#!/usr/bin/env bash
# Unpacks Debian's MPICH, an MPI library without the MPI 5 standard ABI, into a folder, so that the tests of the shim can
# use it. Nothing is installed: the packages are fetched by apt-get and unpacked by dpkg, without root.
#
#   runtime/interpose/tests/debian.sh [FOLDER]        the folder is target/peers/debian-mpich unless named
#
# FOLDER/bin/mpicc compiles programs that find the unpacked libraries, FOLDER/bin/mpiexec starts them.
set -euo pipefail
cd "$(dirname "$0")/../../.."
folder=${1:-target/peers/debian-mpich}
[ ! -x "$folder/bin/mpicc" ] || exit 0
command -v apt-get >/dev/null && command -v dpkg >/dev/null || { echo "debian.sh: this system has no apt-get" >&2; exit 1; }
echo "debian.sh: fetching Debian's MPICH into $folder"
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
rm -rf "$folder/new"
mkdir -p "$folder/new/packages" "$folder/bin"
# The libraries on which Debian's MPICH depends and which scripts/setup does not install.
packages="mpich libmpich12 libmpich-dev libucx0 libslurm38 hwloc-nox"
fetch() { (cd "$folder/new/packages" && apt-get -qq -o APT::Sandbox::User=root download $packages) >/dev/null; }
# A new system has no lists of packages yet.
fetch || { [ "$(id -u)" = 0 ] && apt-get -qq update && fetch; }
for package in "$folder"/new/packages/*.deb; do dpkg -x "$package" "$folder/new/root"; done
rm -rf "$folder/new/packages" "$folder/root"
mv "$folder/new/root" "$folder/root"
rmdir "$folder/new"
root=$folder/root/usr
lib=$(cd "$root/lib" && echo */libmpich.so.12)
lib=$root/lib/${lib%/*}
# The script of the package, with the paths of the folder. The libraries need others of the folder, which only DT_RPATH
# makes them find.
sed "s|=/usr|=$root|" "$root/bin/mpicc.mpich" >"$root/bin/mpicc"
cat >"$folder/bin/mpicc" <<END
#!/bin/sh
exec bash "$root/bin/mpicc" "\$@" -Wl,-rpath,"$lib" -Wl,--disable-new-dtags
END
cat >"$folder/bin/mpiexec" <<END
#!/bin/sh
LD_LIBRARY_PATH=$lib exec "$root/bin/mpiexec.hydra" "\$@"
END
chmod +x "$root/bin/mpicc" "$folder/bin/mpiexec" "$folder/bin/mpicc"
