#!/bin/bash
# What `cmake --install` makes of a built tree works, is complete, and may be moved. usage: install_test.sh CMAKE FOLDER
# FOLDER is the build folder. The part of the module file runs where tclsh is installed.
set -u
cmake=$1 build=$(realpath "$2")
source=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(realpath "$(mktemp -d)")
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
for name in ${!HARNESS_*}; do unset "$name"; done
unset DESTDIR
failures=0
wrong() { echo "install: $*"; failures=$((failures + 1)); }

# Installed for one place, below the folder of a package; used in another.
DESTDIR=$folder/package "$cmake" --install "$build" --prefix /opt/first > log 2>&1 || { cat log; exit 1; }
[ "$(ls package package/opt)" = "$(printf 'package:\nopt\n\npackage/opt:\nfirst')" ] ||
  wrong "DESTDIR: $(find package -maxdepth 2)"
mkdir "a site"
mv package/opt/first "a site/second"
rm -r package
prefix=$folder/a\ site/second
program=$prefix/bin/harness

# $1: words that the output must have; then the command.
expect() {
  local words=$1 output rc=0
  shift
  output=$("$@" 2>&1) || rc=$?
  [ $rc = 0 ] && [[ $output == *"$words"* ]] && return
  wrong "expected '$words' of: $* (exit code $rc)"
  echo "$output" | head -20
}

version=$("$build/bin/harness" --version)
number=${version%% *}
expect "$version" "$program" --version
expect "2 ranks" "$program" plan "$prefix/share/harness/configs/laptop.yaml" --ranks 2
for config in "$source"/configs/*.yaml "$source"/configs/hardware/*.yaml; do
  cmp "$config" "$prefix/share/harness/${config#"$source"/}" || failures=$((failures + 1))
done
# The hardware files: of a configuration that came along, and of one of the user's own, somewhere else.
expect "hardware file H100" "$program" plan "$prefix/share/harness/configs/16node.yaml" --ranks 128 --set hardware=h100-sxm
cp "$source/configs/16node.yaml" own.yaml
expect "hardware file H100" "$program" plan own.yaml --ranks 128 --set hardware=h100-sxm
expect "wrote" "$program" init -o first.yaml
if [[ $version == *"backend cpu: built"* ]]; then
  expect "0 failed, 0 not run" "$program" selftest reference --backend cpu
fi
for file in README.md CHANGELOG.md LICENSE docs/running.md; do
  [ -s "$prefix/share/doc/harness/$file" ] || wrong "$file is missing"
done

# Nothing points back to where it was built, and the module of the cuda backend is there if it was built.
if [ -e "$build/bin/libharness_cuda.so" ] && [ ! -e "$prefix/bin/libharness_cuda.so" ]; then wrong "no module"; fi
for file in "$prefix"/bin/*; do
  path=$(readelf -d "$file" | sed -n 's/.*R\(UN\)\?PATH.*\[\(.*\)\]/\2/p')
  case :$path: in *":$build"* | *":$source"* | *":/opt/first"*) wrong "$file searches in $path" ;; esac
  case $path in "\$ORIGIN"*) ;; *) wrong "$file: \$ORIGIN is not first in its path '$path'" ;; esac
done

# The module file, through a link of the site: what the commands of Environment Modules would be told.
ln -s "$prefix/share/modulefiles/harness/$number" "$folder/latest"
head -1 "$folder/latest" | grep -q '^#%Module' || wrong "$(ls "$prefix/share/modulefiles/harness"): not a module file"
if command -v tclsh > /dev/null; then
  cat > read.tcl << 'END'
foreach command {module-whatis conflict prepend-path} {proc $command args "puts \"$command \[join \$args]\""}
set ModulesCurrentModulefile [lindex $argv 0]
source $ModulesCurrentModulefile
ModulesHelp
END
  expect "prepend-path PATH $prefix/bin" tclsh read.tcl "$folder/latest"
  expect "$prefix/share/harness/configs" tclsh read.tcl "$folder/latest"
else
  echo "tclsh is not installed: the module file was not read"
fi

[ $failures = 0 ] && echo "install: passed"
exit $((failures > 0))
