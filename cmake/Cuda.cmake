# Dependencies of the cuda backend: the CUDA Toolkit (>= 12.4) with cuBLASLt, NCCL (>= 2.18) and cuDNN (>= 9), all or
# none. Fused attention also needs the headers of cudnn-frontend and cuDNN >= 9.15.1. Included by Dependencies.cmake.
#   -DHARNESS_CUDA=OFF               leave the backend out
#   -DCMAKE_CUDA_COMPILER=…/nvcc     a toolkit that is not in PATH, CUDA_HOME or /usr/local/cuda
#   -DCMAKE_CUDA_ARCHITECTURES=90    for one kind of GPU alone
#   -DCUDNN_FRONTEND_INCLUDE=…       the folder with cudnn_frontend.h
option(HARNESS_CUDA "build the cuda backend if its libraries are found" ON)
set(HARNESS_CUDA_MISSING "")
include(CudaArchitectures)

if(NOT HARNESS_CUDA)
  list(APPEND HARNESS_CUDA_MISSING "HARNESS_CUDA is OFF")
else()
  find_program(HARNESS_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
  if(NOT CMAKE_CUDA_COMPILER AND HARNESS_NVCC)
    set(CMAKE_CUDA_COMPILER ${HARNESS_NVCC})
  endif()
  if(CMAKE_CUDA_COMPILER AND NOT CMAKE_CUDA_ARCHITECTURES)
    execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --list-gpu-arch OUTPUT_VARIABLE known ERROR_QUIET)
    cuda_architectures(architectures "${known}")
    set(CMAKE_CUDA_ARCHITECTURES ${architectures} CACHE STRING "GPUs to make code for")
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    list(APPEND HARNESS_CUDA_MISSING "the CUDA Toolkit (nvcc in PATH or CUDA_HOME)")
  endif()
endif()

if(NOT HARNESS_CUDA_MISSING)
  find_package(CUDAToolkit 12.4 QUIET)
  if(NOT CUDAToolkit_FOUND)
    list(APPEND HARNESS_CUDA_MISSING "CUDA Toolkit 12.4 or newer (${CMAKE_CUDA_COMPILER} is older)")
  elseif(NOT TARGET CUDA::cublasLt)
    list(APPEND HARNESS_CUDA_MISSING "cuBLASLt")
  endif()
  foreach(library nccl cudnn)
    string(TOUPPER ${library} upper)
    find_path(${upper}_INCLUDE ${library}.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV ${upper}_HOME PATH_SUFFIXES include)
    find_library(${upper}_LIBRARY ${library} HINTS ${CUDAToolkit_LIBRARY_DIR} ENV ${upper}_HOME PATH_SUFFIXES lib lib64)
    if(NOT ${upper}_INCLUDE OR NOT ${upper}_LIBRARY)
      list(APPEND HARNESS_CUDA_MISSING "${library} (${library}.h and lib${library}.so; ${upper}_HOME says where)")
    endif()
  endforeach()
endif()

if(HARNESS_CUDA_MISSING)
  set(HARNESS_HAS_CUDA_BACKEND OFF)
  string(REPLACE ";" ", " HARNESS_CUDA_MISSING_TEXT "${HARNESS_CUDA_MISSING}")
  if(HARNESS_CUDA)
    set(HARNESS_CUDA_REMEDY "the build missed ${HARNESS_CUDA_MISSING_TEXT}: install it and build again")
    string(PREPEND HARNESS_CUDA_MISSING_TEXT "missing ")
  else()
    # (Not `make` alone: a build that was configured with OFF remembers it.)
    set(HARNESS_CUDA_REMEDY
      "it was left out on purpose (HARNESS_CUDA=OFF, as in the build of `make demo`): run `make CMAKE_FLAGS=-DHARNESS_CUDA=ON`")
  endif()
  message(STATUS "backend cuda: left out, ${HARNESS_CUDA_MISSING_TEXT}")
  return()
endif()

set(HARNESS_HAS_CUDA_BACKEND ON)
set(HARNESS_CUDA_MISSING_TEXT "")
enable_language(CUDA)
# nvcc's host compiler already searches these folders. Repeated with -isystem, /usr/include would come before the C++
# library's own folder and hide it.
list(APPEND CMAKE_CUDA_IMPLICIT_INCLUDE_DIRECTORIES ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25.1 (Debian 12) knows no C++20 of nvcc
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_STANDARD 20)  # after the language: CMake tries the compiler with what is set before
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
if(CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()

# CUPTI and NVML are loaded at run time if present, never linked.
add_library(dep_cuda INTERFACE)
target_include_directories(dep_cuda SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(dep_cuda INTERFACE CUDA::cudart ${CMAKE_DL_LIBS})
find_path(CUPTI_INCLUDE cupti.h HINTS ${CUDAToolkit_INCLUDE_DIRS}
  ${CUDAToolkit_BIN_DIR}/../extras/CUPTI/include)  # without it there is no timeline
if(CUPTI_INCLUDE)
  target_include_directories(dep_cuda SYSTEM INTERFACE ${CUPTI_INCLUDE})
endif()
add_library(dep::cuda ALIAS dep_cuda)
add_library(dep_cublaslt INTERFACE)
target_link_libraries(dep_cublaslt INTERFACE CUDA::cublasLt)
add_library(dep::cublaslt ALIAS dep_cublaslt)
add_library(dep_nccl INTERFACE)
target_include_directories(dep_nccl SYSTEM INTERFACE ${NCCL_INCLUDE})
target_link_libraries(dep_nccl INTERFACE ${NCCL_LIBRARY})
add_library(dep::nccl ALIAS dep_nccl)

# Fused attention uses cudnn-frontend, which is header-only (`make setup` fetches it).
find_path(CUDNN_FRONTEND_INCLUDE cudnn_frontend.h
  HINTS ${CMAKE_SOURCE_DIR}/.deps/cudnn-frontend/include ENV CUDNN_FRONTEND_HOME PATH_SUFFIXES include)
add_library(dep_cudnn INTERFACE)
target_include_directories(dep_cudnn SYSTEM INTERFACE ${CUDNN_INCLUDE})
target_link_libraries(dep_cudnn INTERFACE ${CUDNN_LIBRARY})
if(CUDNN_FRONTEND_INCLUDE)
  set(HARNESS_HAS_CUDNN_FRONTEND ON)
  target_include_directories(dep_cudnn SYSTEM INTERFACE ${CUDNN_FRONTEND_INCLUDE})
  # (Not CUDA::nvrtc: with it, every program would need the driver's libcuda.so.1 to start.)
  target_link_libraries(dep_cudnn INTERFACE ${CUDA_nvrtc_LIBRARY})
  set(attention "with fused attention")
  # The driver stub, for a test that queries cuDNN's kernels without a GPU.
  find_file(CUDA_DRIVER_STUB libcuda.so HINTS ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES stubs NO_DEFAULT_PATH)
else()
  set(HARNESS_HAS_CUDNN_FRONTEND OFF)
  set(attention "WITHOUT fused attention (cudnn_frontend.h was not found: make setup, or -DCUDNN_FRONTEND_INCLUDE=)")
endif()
add_library(dep::cudnn ALIAS dep_cudnn)
message(STATUS "backend cuda: built with CUDA ${CUDAToolkit_VERSION} for ${CMAKE_CUDA_ARCHITECTURES}, ${attention}")
