# cuda_architectures(RESULT KNOWN): sets RESULT to the targets to compile for, in the format of
# CMAKE_CUDA_ARCHITECTURES. KNOWN is the output of `nvcc --list-gpu-arch`. One target for each generation of data-centre
# GPU that the toolkit supports: V100 (until CUDA 12), A100, H100 and H200, B200. The last is also built as PTX, for
# later ones.
function(cuda_architectures result known)
  set(architectures "")
  foreach(architecture 70 80 90 100)
    if(known MATCHES "compute_${architecture}[\r\n]")
      list(APPEND architectures ${architecture}-real)
    endif()
  endforeach()
  if(architectures)
    list(POP_BACK architectures last)
    string(REPLACE "-real" "" last "${last}")
    list(APPEND architectures ${last})
  endif()
  set(${result} "${architectures}" PARENT_SCOPE)
endfunction()
