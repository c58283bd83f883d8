#!/usr/bin/env bash
# Builds the test suites of libraries and programs that use MPI against the typepack whose mpicc is first in PATH, and
# runs them. scripts/clients --more calls this script. Sources come from Debian, PyPI and crates.io; the repository has
# no copy. All files stay in FOLDER. A build is kept until mpi.h, FOLDER or this script's line for it changes.
#
#   more.sh --names                   prints the names of all clients
#   more.sh --packages NAME...        prints the Debian packages that the clients need and that are missing
#   more.sh FOLDER NAME...            builds and runs; one line of results for each client
#
# A test that fails must be in more.excluded, which states a reason for each entry. If another fails, the exit code is
# 1.
# FOLDER/NAME.log has the output of each client, and FOLDER/NAME.results one line for each test.
set -euo pipefail

names=(pnetcdf hdf5 rsmpi mpi-sys hdf5-metno h5py mpi4py-fft fftw boost)
# The number of ranks where a suite leaves it open.
ranks=4
if [ "${1:-}" = --names ]; then
  echo "${names[*]}"
  exit
fi
if [ "${1:-}" = --packages ]; then
  shift
  # Each line has a client, a Debian package and a command that succeeds if the package's files are there.
  while read -r client package check; do
    [[ " $* " != *" $client "* ]] || bash -c "$check" >/dev/null 2>&1 || echo "$package"
  done <<'END' | sort -u
pnetcdf     autoconf      command -v autoreconf
pnetcdf     automake      command -v automake
pnetcdf     libtool       test -e /usr/share/aclocal/libtool.m4
pnetcdf     m4            command -v m4
pnetcdf     make          command -v make
hdf5        make          command -v make
h5py        make          command -v make
hdf5-metno  make          command -v make
fftw        make          command -v make
fftw        perl          command -v perl
mpi4py-fft  libfftw3-dev  test -e /usr/include/fftw3.h
rsmpi       libclang-dev  ls /usr/lib/llvm-*/lib/libclang.so
END
  exit
fi
work=$(cd "$1" && pwd)
shift
pins=$(cd "$(dirname "$0")" && pwd)
jobs=$(nproc)
# No job of a suite takes as long. HDF5's t_cache_image uses 15 minutes of processor time.
export MPIEXEC_TIMEOUT=3600

quietly() { # what, command...: the log is that of the client
  local what=$1
  shift
  if ! "$@" >>"$log" 2>&1; then
    tail -n 40 "$log" >&2
    echo "clients: $client: $what failed; the end of the output is above, and the whole output is in $log" >&2
    return 1
  fi
}
# Fetches and unpacks a source package of Debian, and builds it, if this has not been done. The build is a function.
debian() { # package, version without Debian's part, Debian's part, folder in the archive, function, wanted files...
  local archive wanted
  wanted=$(cat "$(dirname "$(command -v mpicc)")/../include/mpi.h" <(echo "$work $2-$3"; declare -f "$5") | sha256sum)
  source=$work/$4
  [ "$(cat "$work/$client.stamp" 2>/dev/null)" != "$wanted" ] || return 0
  archive=$(echo "$work/$1_$2.orig.tar."*)
  if [ ! -e "$archive" ]; then
    echo "clients: fetching Debian's source package $1 $2"
    quietly "fetching the source" "$pins/source.sh" "$work" "$1=$2-$3" || return 1
    archive=$(echo "$work/$1_$2.orig.tar."*)
  fi
  rm -rf "$source" "$work/$client.stamp"
  quietly "unpacking" tar -xf "$archive" -C "$work" --wildcards "${@:6}" || return 1
  echo "clients: building $1 $2"
  quietly "building" "$5" || return 1
  echo "$wanted" >"$work/$client.stamp"
}
# Runs a command, whose success is that of a test. $output has what it printed.
try() { # name, command...
  local test=$1 verdict=FAIL
  shift
  if "$@" >"$output" 2>&1 </dev/null; then verdict=PASS; fi
  { echo "=== $verdict $test: $*"; cat "$output"; } >>"$log"
  echo "$verdict $test" >>"$results"
}

pnetcdf() {
  version=1.12.3
  build() {
    cd "$source" && autoreconf -i && ./configure MPICC=mpicc --disable-fortran --disable-cxx TESTMPIRUN="mpiexec -n NP" &&
      make -j"$jobs" && make -j"$jobs" tests
  }
  debian pnetcdf $version 1 pnetcdf-$version build || return 1
  # The parallel tests stop at the first failure of a folder and a number of ranks, so each pair of these is a test.
  cd "$source"
  find . -name '*.trs' -delete
  make -k check >>"$log" 2>&1 || true
  find . -name '*.trs' | sort | while read -r file; do
    # XFAIL: the test must fail, and it did.
    sed -n "s|^:test-result: XFAIL.*|PASS ${file:2:-4}|p; s|^:test-result: \([A-Z]*\).*|\1 ${file:2:-4}|p" "$file"
  done >>"$results"
  local folder target
  for folder in test/C test/fandc test/nc_test test/cdf_format test/header test/testcases test/nonblocking benchmarks/C \
    examples/C examples/tutorial; do
    for target in $(sed -n 's/^ptests:\(.*\)/\1/p; s/^ptest ptests \(ptest[0-9]*\):.*/\1/p' "$folder/Makefile"); do
      try "$folder/$target" make -C "$folder" "$target"
      sed -n "s|^\*\*\* TESTING *\(.*[^ ]\)  *-* pass.*|PASS $folder/$target: \1|p" "$output" >>"$results"
    done
  done
}

# Builds only the two libraries that h5py needs, and the parallel tests.
hdf5_library() {
  version=1.10.8
  build() {
    cd "$source" && ./configure CC=mpicc --enable-parallel --disable-fortran --disable-cxx --disable-tools --disable-static \
      --enable-build-mode=production --enable-optimization=none --prefix="$work/hdf5" \
      RUNPARALLEL="mpiexec -n \$\${NPROCS:=$ranks}" &&
      make -j"$jobs" -C src install && make -j"$jobs" -C hl/src install
  }
  local client=hdf5
  debian hdf5 $version+repack1 1 "hdf5-$version+repack1" build
}
hdf5() {
  hdf5_library || return 1
  local test
  cd "$source/testpar"
  rm -f ./*.chkexe ./*.chklog
  quietly "building the library of the tests" make -j"$jobs" -C ../test libh5test.la || return 1
  for test in $(sed -n 's/^TEST_PROG_PARA = *//p' Makefile); do
    quietly "building $test" make -j"$jobs" "$test" || return 1
    try "$test" make -s "$test.chkexe_" RUNEXEC="mpiexec -n $ranks"
  done
  quietly "building the flush test" make t_pflush1 t_pflush2 testpflush.sh || return 1
  try testpflush.sh make -s testpflush.sh.chkexe_
}

fftw() {
  version=3.3.10
  build() {
    cd "$source" && ./configure MPICC=mpicc MPIRUN=mpiexec --enable-mpi --disable-fortran --disable-doc CFLAGS=-O1 &&
      make -j"$jobs"
  }
  debian fftw3 $version 1 fftw-$version build || return 1
  # What make check does, with the same number of random sizes; the output has a line for each transform.
  local size
  cd "$source/mpi"
  for size in 1 2 3 4; do
    try "$size-ranks" perl -w ../tests/check.pl --verbose --random --maxsize=10000 -c=10 --mpi "mpiexec -n $size $PWD/mpi-bench"
    sed -n "s/^\(\S*[0-9]\S*\) [0-9.e+-]* [0-9.e+-]* [0-9.e+-]*$/PASS $size-ranks:\1/p" "$output" >>"$results"
  done
}

# The library and its tests, compiled without Boost's own build system. The list of the tests and of their numbers of
# ranks is in the package.
boost() {
  version=1.74.0
  build() {
    cd "$source" && rm -rf include && mkdir include && local folder
    for folder in libs/*/include libs/numeric/*/include; do cp -r "$folder/." include; done
    mkdir objects && cd objects && printf '%s\n' ../libs/serialization/src/*.cpp ../libs/mpi/src/*.cpp |
      grep -v '/[a-z0-9_]*\(xml\|polymorphic\|_w\|wi\|wo\|facet\)' |
      xargs -P "$jobs" -n 4 mpicxx -w -O0 -I../include -DBOOST_MPI_SOURCE=1 -DBOOST_NO_STD_WSTREAMBUF -c &&
      ar rcs libboost.a ./*.o
  }
  debian boost1.74 $version+ds1 21 boost build 'boost/libs/*/include' boost/libs/{mpi,serialization/src} || return 1
  local line test file sizes size
  cd "$source/libs/mpi/test"
  while read -r line; do
    read -r test file sizes <<<"$line"
    [ "$file" != - ] || file=$test.cpp
    if [ ! -x "$test" ] && ! mpicxx -w -O0 -I../../../include "$file" ../../../objects/libboost.a -o "$test" >>"$log" 2>&1; then
      echo "FAIL $test (does not compile)" >>"$results"
      continue
    fi
    for size in ${sizes:-1 2 3 4 7 8 13 17}; do
      try "$test-$size" mpiexec -n "$size" "./$test"
    done
  done < <(sed -n 's/^ *\[ mpi-test \(.*\)\]/\1/p' Jamfile.v2 | awk -F: '{
    gsub(/ /, "", $1); gsub(/ /, "", $2); print $1, ($2 == "" ? "-" : $2), $4 }')
}

# A package that depends on the crate makes cargo fetch it. The crate's own Cargo.lock pins what it depends on.
crate() { # name, version, folder
  source=$work/$3
  [ ! -e "$source/Cargo.lock" ] || return 0
  echo "clients: fetching the crate $1 $2"
  fetch() {
    rm -rf "$work/crate" && mkdir -p "$work/crate/src" && cd "$work/crate" && touch src/lib.rs &&
      printf '%s\n' '[package]' 'name = "none"' 'version = "0.0.0"' '[dependencies]' "$1 = \"=$2\"" '[workspace]' \
        >Cargo.toml && cargo vendor --quiet && cp -r "vendor/$1" "$source" && rm -rf "$work/crate" &&
      echo '[workspace]' >>"$source/Cargo.toml"
  }
  quietly "fetching the crate" fetch "$1" "$2"
}
# The lines of the guide (runtime/guide/tutorial/sys.md), which put our bindings in the place of those that need clang.
patched() {
  local prefix
  prefix=$(cd "$(dirname "$(command -v mpicc)")/.." && pwd)
  grep -q '^\[patch' Cargo.toml ||
    printf '%s\n' '[patch.crates-io]' "mpi-sys = { path = \"$prefix/share/typepack/mpi-sys\" }" >>Cargo.toml
}
# Runs a command without clang, without an mpicc, and without the target folder of this repository.
without_clang() {
  local folder path=
  mkdir -p "$work/no-clang"
  for folder in cargo rustc cc; do ln -sf "$(command -v $folder)" "$work/no-clang"; done
  env -u CARGO_TARGET_DIR -u MPICC LIBCLANG_PATH="$work/no-clang" PATH="$work/no-clang:/usr/bin:/bin" "$@"
}

# rsmpi's examples with our bindings. The programs are linked with no MPI library, so the same ones run on others, too.
mpi-sys() {
  version=0.8.2
  local example peers=$work/../../peers
  crate mpi $version mpi-sys-$version || return 1
  cd "$source"
  patched
  echo "clients: building the examples of rsmpi $version without clang"
  quietly "building" without_clang cargo build --examples --all-features --quiet || return 1
  try "no-bindgen" sh -c '! grep -E "\"(bindgen|clang-sys)\"" Cargo.lock'
  for example in examples/*.rs; do
    example=$(basename "$example" .rs)
    try "$example-typepack" mpiexec -n 2 "target/debug/examples/$example"
    [ ! -e "$peers/mpich/lib/libmpi_abi.so.1" ] || try "$example-mpich" env LD_LIBRARY_PATH="$peers/mpich/lib" \
      timeout -k 1 60 "$peers/mpich/bin/mpiexec" -n 2 "target/debug/examples/$example"
    [ ! -e "$peers/impi-rt/lib/libmpi_abi.so.1" ] || try "$example-intel" env LD_LIBRARY_PATH="$peers/impi-rt/lib" \
      I_MPI_FABRICS=shm timeout -k 1 60 "$peers/impi-rt/bin/mpiexec.hydra" -n 2 "target/debug/examples/$example"
  done
}

# The tests of hdf5-metno that need an HDF5 with MPI, with our bindings, as jobs of one and two ranks.
hdf5-metno() {
  hdf5_library || return 1
  version=0.15.1
  crate hdf5-metno $version hdf5-metno-$version || return 1
  cd "$source"
  patched
  echo "clients: building the tests of hdf5-metno $version without clang"
  quietly "building" without_clang env HDF5_DIR="$work/hdf5" cargo test --features mpio --test test_plist --no-run || return 1
  local program size
  program=$(find target/debug/deps -name 'test_plist-*' -perm -u+x -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d' ' -f2)
  for size in 1 2; do
    try "test_plist-$size" mpiexec -n "$size" env LD_LIBRARY_PATH="$work/hdf5/lib" "$program" --test-threads 1
  done
}

rsmpi() {
  version=0.8.2
  local example size
  crate mpi $version mpi-$version || return 1
  cd "$source"
  echo "clients: building the examples of rsmpi $version"
  quietly "building" env -u CARGO_TARGET_DIR MPICC=mpicc cargo build --locked --examples --all-features --quiet || return 1
  for example in examples/*.rs; do
    example=$(basename "$example" .rs)
    for size in 2 "$ranks"; do
      try "$example-$size" mpiexec -n "$size" "target/debug/examples/$example"
    done
  done
}

# Runs pytest on every rank, and adds the results of all ranks.
pytest_job() { # ranks, argument...
  local size=$1
  shift
  rm -f "$work"/junit.*.xml
  # Runs in the shell of a rank.
  # shellcheck disable=SC2016
  mpiexec -n "$size" sh -c 'exec python -m pytest --junitxml="$0.$TYPEPACK_RANK.xml" "$@"' "$work/junit" -q "$@" \
    >>"$log" 2>&1 </dev/null || true
  python "$pins/junit.py" "$size" "$work"/junit.*.xml >>"$results"
}

fetched() { PIP_NO_INDEX=1 PIP_FIND_LINKS=$work/../wheels "$@"; }
python_package() { # name, version, variables of the build...
  local package=$1 file=$pins/$1.txt wheels=$work/../wheels
  shift 2
  if ! fetched pip install --no-deps --require-hashes -r "$pins/more.txt" >>"$log" 2>&1; then
    quietly "fetching wheels" pip download -d "$wheels" --no-deps --require-hashes --only-binary :all: -r "$pins/more.txt" || return 1
    quietly "installing wheels" fetched pip install --no-deps --require-hashes -r "$pins/more.txt" || return 1
  fi
  wanted=$(cat "$file" "$work/../mpi4py.stamp" <(echo "$work $*") | sha256sum)
  [ "$(cat "$work/$client.stamp" 2>/dev/null)" != "$wanted" ] || return 0
  rm -f "$work/$client.stamp"
  local from=(--no-deps --no-build-isolation --no-binary "$package" --require-hashes -r "$file")
  build() { fetched env "$@" pip install --force-reinstall "${from[@]}"; }
  echo "clients: building $package $version"
  if ! build "$@" >>"$log" 2>&1; then
    quietly "fetching the source" env "$@" pip download -d "$wheels" "${from[@]}" || return 1
    quietly "building" build "$@" || return 1
  fi
  echo "$wanted" >"$work/$client.stamp"
}

h5py() {
  hdf5_library || return 1
  version=3.14.0
  python_package h5py $version CFLAGS=-O1 CC=mpicc HDF5_MPI=ON "HDF5_DIR=$work/hdf5" || return 1
  cd "$work"
  pytest_job 2 --pyargs h5py --with-mpi -p no:cacheprovider
}

# Runs the programs that have the tests of PyPI's archive; the installed package has none. test_fftw and test_libfft do
# not use MPI, and test_speed measures. test_io needs h5py, if that has been built.
mpi4py-fft() {
  version=2.0.6
  python_package mpi4py-fft $version CFLAGS=-O1 || return 1
  source=$work/mpi4py_fft-$version
  [ -e "$source" ] || tar -xzf "$work/../wheels/mpi4py_fft-$version.tar.gz" -C "$work"
  cd "$source/tests"
  local test size
  for test in test_pencil test_darray test_mpifft test_io; do
    for size in 1 2 "$ranks"; do
      if [ $test = test_io ] && ! python -c 'import h5py' 2>/dev/null; then
        echo "SKIP $test-$size" >>"$results"
      else
        try "$test-$size" mpiexec -n "$size" python "$test.py"
      fi
    done
  done
}

failed_clients=()
while (($#)); do
  client=$1 log=$work/$1.log results=$work/$1.results output=$work/$1.output version=
  shift
  : >"$log"
  : >"$results"
  begun=$SECONDS
  # Not in a condition, so that the shell ends at an error that a client does not expect.
  set +e
  (set -e; "$client"; echo "$version" >"$work/version")
  code=$?
  set -e
  ((code == 0)) || echo "FAIL (the build or the run)" >>"$results"
  python3 "$pins/more.py" "$client" "$(cat "$work/version")" "$((SECONDS - begun))" "$results" "$pins/more.excluded" ||
    failed_clients+=("$client")
  rm -f "$output" "$work/version"
done
if ((${#failed_clients[@]})); then
  echo "clients: failed: ${failed_clients[*]}; $work/NAME.log has the output of each client" >&2
  exit 1
fi
