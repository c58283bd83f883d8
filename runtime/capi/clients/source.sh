#!/usr/bin/env bash
# Fetches the original source of Debian packages into a folder; installs and unpacks nothing. apt-get checks what it
# fetches by Debian's signatures. Uses separate lists of packages, so that the user's own lists do not change.
#
#   runtime/capi/clients/source.sh FOLDER PACKAGE=VERSION...
set -euo pipefail
cd "$1"
shift
lists=$PWD/apt
rm -rf "$lists" && mkdir -p "$lists/state/partial" "$lists/sources"
sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >"$lists/sources/all.list" 2>/dev/null || true
for file in /etc/apt/sources.list.d/*.sources; do
  [ -e "$file" ] && sed 's/^Types:.*/Types: deb-src/' "$file" >"$lists/sources/$(basename "$file")"
done
options=(-o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$lists/sources" -o "Dir::State::lists=$lists/state")
apt-get "${options[@]}" update
apt-get "${options[@]}" source --download-only "$@"
rm -rf "$lists"
