#!/bin/sh
# Installs what building and testing needs and what is missing (Debian/Ubuntu, as root). Elsewhere: asks CMake, which
# knows every library by its own search, and passes on what it misses. Nothing is done when nothing is missing.
# usage: scripts/setup.sh [--dev]      --dev: also what `make lint` and continuous integration need
set -eu
cd "$(dirname "$0")/.."

# One line per need: the package, then packages that serve as well, after "|".
required="g++|g++-11|g++-12|g++-13|g++-14 cmake
libopenmpi-dev|libmpich-dev openmpi-bin|mpich libhdf5-dev|libhdf5-openmpi-dev|libhdf5-mpich-dev
libyaml-cpp-dev libcli11-dev libfmt-dev nlohmann-json3-dev"
cpu_backend="libdnnl-dev libgloo-dev"
tests="libgtest-dev"
benchmarks="libbenchmark-dev"
convenience="ninja-build ccache"
# Chromium: the tests open reports in it; without it they say that they did not.
development="clang-format clang-tidy libomp-dev python3-h5py chromium"

needs="$required $cpu_backend $tests $benchmarks $convenience"
[ "${1:-}" = --dev ] && needs="$needs $development"

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
  # An MPI of the site (a module, say) is better than one we would install.
  case $need in *mpi*) command -v mpicc > /dev/null && command -v mpirun > /dev/null && found=yes ;; esac
  [ -n "$found" ] || missing="$missing ${need%%|*}"
done
scripts/get_cudnn_frontend.sh
[ -n "$missing" ] || exit 0

if ! command -v apt-get > /dev/null || [ "$(id -u)" != 0 ]; then
  # The libraries may be there by another way: modules, a user prefix in CMAKE_PREFIX_PATH.
  if [ "${1:-}" != --dev ] && scripts/build.sh release --configure-only > build-setup.tmp 2>&1; then
    grep 'left out' build-setup.tmp >&2 || true
    rm -f build-setup.tmp
    exit 0
  fi
  [ -f build-setup.tmp ] && sed -n '/^harness:/p; /needs/,$p' build-setup.tmp | grep -v -e '^Call Stack' -e '^-- Configuring' -e '^See also' -e '^$' -e '^ *\(CMakeLists\|cmake/\).*([a-z_]*)$' >&2
  rm -f build-setup.tmp
  if command -v apt-get > /dev/null; then
    echo "setup: not root, and these packages are missing:$missing" >&2
    echo "setup: run \`sudo make setup\`, or have them installed: apt-get install$missing" >&2
  else
    echo "setup: no apt-get here. What Debian calls$missing" >&2
    echo "setup: is needed from modules (\`module avail\`), a package manager, Spack or a prefix of yours;" >&2
  fi
  echo "setup: libraries in a prefix: CMAKE_PREFIX_PATH=/path/to/prefix make" >&2
  exit 1
fi

echo "setup: installing$missing"
export DEBIAN_FRONTEND=noninteractive
apt="apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -o Dpkg::Use-Pty=0"
if ! $apt update < /dev/null; then
  echo "setup: apt-get update failed; trying with the package lists that are here" >&2
fi

available="" absent=""
for package in $missing; do
  if apt-cache show --no-all-versions "$package" > /dev/null 2>&1; then
    available="$available $package"
    continue
  fi
  absent="$absent $package"
  case " $cpu_backend " in *" $package "*) echo "setup: no package $package here: the cpu backend is left out" >&2 ;; esac
  case " $benchmarks $convenience " in *" $package "*) echo "setup: no package $package here: done without" >&2 ;; esac
  case " $(echo "$required $tests" | tr '|\n' '  ') " in *" $package "*)
    echo "setup: no package $package here (is the \`universe\` component on? is this older than Debian 12, Ubuntu 22.04?);" >&2
    echo "setup: provide it in a prefix: CMAKE_PREFIX_PATH=/path/to/prefix make" >&2 ;;
  esac
done

# CMake looks again at what it missed.
rm -f build/*/.configured
if [ -n "$available" ]; then
  # shellcheck disable=SC2086
  $apt install -y --no-install-recommends $available < /dev/null
fi
for package in $absent; do
  case " $(echo "$required $tests" | tr '|\n' '  ') " in *" $package "*) exit 1 ;; esac
  if [ "${1:-}" = --dev ]; then
    case " $development " in *" $package "*) echo "setup: no package $package here" >&2; exit 1 ;; esac
  fi
done
exit 0
