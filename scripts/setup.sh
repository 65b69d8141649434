#!/bin/sh
# Installs missing packages for building and testing (Debian or Ubuntu, as root). Elsewhere, it runs CMake, which finds
# libraries by its own search, and prints what CMake misses. Does nothing if nothing is missing.
# usage: scripts/setup.sh [--dev | --demo]
#   --dev: also what `make lint` and continuous integration need; --demo: only what the program needs, without a GPU
set -eu
cd "$(dirname "$0")/.."

# The packages, each followed by alternatives that serve as well, separated by "|".
required="g++|g++-11|g++-12|g++-13|g++-14 cmake
libopenmpi-dev|libmpich-dev openmpi-bin|mpich libhdf5-dev|libhdf5-openmpi-dev|libhdf5-mpich-dev
libyaml-cpp-dev libcli11-dev libfmt-dev nlohmann-json3-dev libboost-dev"
cpu_backend="libdnnl-dev libgloo-dev"
tests="libgtest-dev libgmock-dev"
benchmarks="libbenchmark-dev"
convenience="ninja-build ccache zlib1g-dev libsqlite3-dev"
development="clang clang-format clang-tidy libomp-dev python3-h5py"
browser="chromium"  # tests open reports in it; without it, these are skipped

needs="$required $cpu_backend $tests $benchmarks $convenience"
[ "${1:-}" = --dev ] && needs="$needs $development $browser"
[ "${1:-}" = --demo ] && needs="$required $cpu_backend ninja-build"

if command -v dpkg-query > /dev/null; then
  # shellcheck disable=SC2046,SC2086
  installed=" $(dpkg-query -W -f '${Package} ${db:Status-Status}\n' $(echo $needs | tr '|' ' ') 2> /dev/null |
    sed -n 's/ installed$//p' | tr '\n' ' ')"
else
  installed=" "
fi
missing=""
for need in $needs; do
  found=""
  for package in $(echo "$need" | tr '|' ' '); do
    case $installed in *" $package "*) found=yes ;; esac
  done
  # Prefer an MPI of the site, such as a module, to one from a package.
  case $need in
    libopenmpi-dev* | openmpi-bin*) command -v mpicc > /dev/null && command -v mpirun > /dev/null && found=yes ;;
  esac
  [ -n "$found" ] || missing="$missing ${need%%|*}"
done
[ "${1:-}" = --demo ] || scripts/fetch.sh cudnn-frontend
[ "${1:-}" != --dev ] || scripts/fetch.sh cuda-binaries
[ -n "$missing" ] || exit 0

if ! command -v apt-get > /dev/null || [ "$(id -u)" != 0 ]; then
  # The libraries may come from elsewhere: modules, or a prefix in CMAKE_PREFIX_PATH.
  preset=release
  tools=""
  [ "${1:-}" != --demo ] || preset=demo
  [ "${1:-}" != --dev ] || tools="clang++ clang-format clang-tidy"
  if (for tool in $tools; do command -v "$tool" || exit 1; done) > /dev/null &&
    scripts/build.sh $preset --configure-only > build-setup.tmp 2>&1; then
    grep 'left out' build-setup.tmp >&2 || true
    rm -f build-setup.tmp
    exit 0
  fi
  if [ -f build-setup.tmp ]; then
    sed -n '/^harness:/p; /needs/,$p' build-setup.tmp |
      grep -v -e '^Call Stack' -e '^-- Configuring' -e '^See also' -e '^$' -e '^ *\(CMakeLists\|cmake/\).*([a-z_]*)$' >&2 ||
      tail -n 10 build-setup.tmp >&2  # an error of CMake's own
  fi
  rm -f build-setup.tmp
  echo "setup: these packages (Debian's names) are missing:$missing" >&2
  echo "setup: run \`sudo make setup\` on Debian or Ubuntu; elsewhere provide them with modules (\`module avail\`), a" >&2
  echo "setup: package manager, Spack or a prefix of your own" >&2
  echo "setup: to build with a prefix: CMAKE_PREFIX_PATH=/path/to/prefix make" >&2
  exit 1
fi

echo "setup: installing$missing"
export DEBIAN_FRONTEND=noninteractive
apt="apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -o Dpkg::Use-Pty=0"
if ! $apt update < /dev/null; then
  echo "setup: apt-get update failed; continuing with the existing package lists" >&2
fi

needed=" $(echo "$required $tests" | tr '|\n' '  ') "
[ "${1:-}" != --dev ] || needed="$needed$development "
available="" failed=""
for package in $missing; do
  if apt-cache show --no-all-versions "$package" > /dev/null 2>&1; then
    available="$available $package"
    continue
  fi
  case $needed in
    *" $package "*)
      failed=yes
      echo "setup: package $package is not available; enable \`universe\`, use Debian 12, Ubuntu 22.04 or newer, or" >&2
      echo "setup: provide it in a prefix: CMAKE_PREFIX_PATH=/path/to/prefix make" >&2
      ;;
    *) echo "setup: package $package is not available; what needs it is left out" >&2 ;;
  esac
done

# Make CMake search again for what it missed.
rm -f build/*/.configured
if [ -n "$available" ]; then
  # shellcheck disable=SC2086
  $apt install -y --no-install-recommends $available < /dev/null
fi
[ -z "$failed" ]
