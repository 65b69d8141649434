# cmake -P: what the build makes code for, with what nvcc of several toolkits prints.
cmake_minimum_required(VERSION 3.22)
include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/CudaArchitectures.cmake)

function(expect toolkit known expected)
  string(REPLACE " " "\n" known "${known} ")
  cuda_architectures(found "${known}")
  if(NOT found STREQUAL expected)
    message(SEND_ERROR "CUDA ${toolkit}: found ${found}; expected ${expected}")
  endif()
endfunction()

set(until_90 "compute_50 compute_52 compute_60 compute_61 compute_70 compute_72 compute_75 compute_80 compute_86 compute_87 compute_89 compute_90")
expect(12.4 "${until_90}" "70-real;80-real;90")
expect(12.8 "${until_90} compute_100 compute_101 compute_120" "70-real;80-real;90-real;100")
expect(13.0 "compute_75 compute_80 compute_86 compute_87 compute_88 compute_89 compute_90 compute_100 compute_110 compute_103 compute_120 compute_121"
  "80-real;90-real;100")
expect(unknown "" "")
