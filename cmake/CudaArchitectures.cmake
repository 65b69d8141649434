# cuda_architectures(RESULT KNOWN): what to make code for, as CMAKE_CUDA_ARCHITECTURES takes it. KNOWN is what
# `nvcc --list-gpu-arch` prints. One for each generation of data-centre GPU that the toolkit supports: V100 (not since
# CUDA 13), A100, H100 and H200, B200. The last is also made as PTX, for what comes later.
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
