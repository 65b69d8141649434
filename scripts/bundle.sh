#!/bin/bash
# Creates build/harness-bundle.tar.gz: the binary, the MPI launcher with its plug-ins, and every library that they need,
# except those of glibc and NVIDIA. The bundle runs on several ranks of one node, with the same or a newer glibc. On the
# node, it needs only the NVIDIA driver, CUDA's libraries, cuDNN and NCCL, of a toolkit or of PyTorch's packages; without
# them, the cpu backend still works. It supports only Open MPI 4, because other MPIs keep their plug-ins elsewhere.
# usage: scripts/bundle.sh
set -euo pipefail
cd "$(dirname "$0")/.."
say() { echo "bundle: $*" >&2; }
# The bundle must also run on other CPUs than this one. Without -march, on Arm, it does.
march=${BUNDLE_MARCH:-$(uname -m | sed -n 's/^x86_64$/x86-64-v3/p')}
CMAKE_FLAGS="${CMAKE_FLAGS:-} -DHARNESS_MARCH=$march" scripts/build.sh bundle
program=build/bundle/bin/harness
mpirun=$(command -v mpirun) || { say "mpirun was not found in PATH"; exit 1; }
info=$(command -v ompi_info) || { say "ompi_info was not found; a bundle needs Open MPI 4"; exit 1; }
orted=$(command -v orted) || { say "orted was not found; a bundle needs Open MPI 4"; exit 1; }

path_of() { "$info" --path "$1" --parsable | sed -n "s/^path:$1://p"; }
plugins=$(path_of pkglibdir)
texts=$(path_of pkgdatadir)
[ -d "$plugins" ] || { say "the plug-ins of Open MPI were not found in $plugins"; exit 1; }
[ -d "$plugins/openmpi3" ] && plugins=$plugins/openmpi3   # where Debian keeps them
pmix=$(ls -d /usr/lib/*/pmix2/lib/pmix "$plugins/../pmix" 2> /dev/null | head -1 || true)

name=harness-bundle
out=build/$name
rm -rf "$out"
mkdir -p "$out"/{bin,lib,plugins,texts,share/harness}
strip -o "$out/bin/harness" $program
[ -e build/bundle/bin/libharness_cuda.so ] && strip -o "$out/bin/libharness_cuda.so" build/bundle/bin/libharness_cuda.so
cp -L "$mpirun" "$out/bin/mpirun"
cp -L "$orted" "$out/bin/orted"
cp -L "$plugins"/*.so "$out/plugins/"
[ -d "$texts" ] && cp -rL "$texts"/. "$out/texts/"
if [ -n "$pmix" ]; then mkdir "$out/pmix"; cp -L "$pmix"/*.so "$out/pmix/"; fi
cp -r configs "$out/configs"
cp -r tests/reference "$out/share/harness/reference"
mkdir "$out/bench"
cp bench/pytorch_step.py "$out/bench/"
mkdir "$out/scripts"
cp scripts/first_light.sh scripts/cuda_libraries.sh scripts/mpi_root.sh "$out/scripts/"
cp README.md LICENSE "$out/"
git describe --always --dirty --abbrev=10 > "$out/COMMIT" 2> /dev/null || true
$program --version > "$out/VERSION"  # and which CUDA it is for

# Libraries, and the libraries that they need in turn.
nvidia='libcuda\.|libcudart|libcublas|libcudnn|libnccl|libnvrtc|libcupti|libnvidia'
glibc='ld-linux|/libc\.so|/libm\.so|/libdl\.so|/librt\.so|/libpthread\.so|/libresolv\.so|/libutil\.so|/libnss_|linux-vdso'
while :; do
  added=0
  while read -r library; do
    target=$out/lib/$(basename "$library")
    [ -e "$target" ] && continue
    cp -L "$library" "$target"
    strip --strip-unneeded "$target" 2> /dev/null || true
    added=1
  done < <(find "$out/bin" "$out/lib" "$out/plugins" "$out/pmix" -type f 2> /dev/null | xargs ldd 2> /dev/null |
    awk '$2 == "=>" && $3 ~ "^/" {print $3}' | sort -u | grep -vE "$nvidia|$glibc" | grep -v "^$PWD/$out")
  [ $added = 0 ] && break
done

# The two commands that people type. They find everything relative to themselves.
write_start() {
  cat > "$out/$1" << 'END'
#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
case $(basename "$0") in mpirun) word=mpirun ;; *) word=harness ;; esac
# What the program names in the commands that it prints: bin/harness alone does not find its libraries.
[ $word = mpirun ] || export HARNESS_CALLED="$0"
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
# What mpirun has found once, its ranks inherit.
if [ -z "${HARNESS_CUDA_LIBRARIES+set}" ]; then
  HARNESS_CUDA_LIBRARIES=$(sh "$here/scripts/cuda_libraries.sh" "$here/bin/libharness_cuda.so")
  [ -z "$HARNESS_CUDA_LIBRARIES" ] || LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$HARNESS_CUDA_LIBRARIES
  export HARNESS_CUDA_LIBRARIES
fi
if [ $word = mpirun ] || [ -z "${OMPI_COMM_WORLD_SIZE:-}" ]; then
  export OPAL_PREFIX="$here" OPAL_BINDIR="$here/bin" OPAL_LIBDIR="$here/lib" OPAL_PKGDATADIR="$here/texts"
  export OMPI_MCA_mca_base_component_path="$here/plugins" OPAL_PKGLIBDIR="$here/plugins"
  # A PMIx that the node has in the folder that this one was built for is of another version: not a word of it.
  export PMIX_MCA_pmix_mca_base_component_show_load_errors=none PMIX_MCA_pcompress_base_silence_warning=1
  [ -d "$here/pmix" ] && export PMIX_MCA_mca_base_component_path="$here/pmix" PMIX_INSTALL_PREFIX="$here"
  # Ranks on one node: no remote shell, no network of the cluster.
  : "${OMPI_MCA_plm_rsh_agent=}" "${OMPI_MCA_btl_vader_single_copy_mechanism=none}"
  export OMPI_MCA_plm_rsh_agent OMPI_MCA_btl_vader_single_copy_mechanism
  if [ "$(id -u)" = 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
fi
exec "$here/bin/$word" "$@"
END
  chmod +x "$out/$1"
}
write_start mpirun
write_start harness

tar -C build -czf "build/$name.tar.gz" "$name"
say "build/$name.tar.gz, $(du -m "build/$name.tar.gz" | cut -f1) MiB ($(du -sm "$out" | cut -f1) MiB unpacked)"
say "$(grep 'backend cuda' "$out/VERSION")"
say "to use it: tar xf $name.tar.gz; cd $name; ./mpirun -np 2 ./harness sweep configs/laptop.yaml"
