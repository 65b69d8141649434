// The tests' interface to the stand-ins for the CUDA runtime, cuBLASLt and NCCL in this folder: settings and queries.
//
// The stand-ins define the C functions of the three libraries that the backend calls. Linked in place of the libraries,
// they run the cuda backend on a machine without a GPU: device memory is host memory between fences, a stream is a
// queue with its own thread, a graph is a graph. Their purpose is to find mistakes of the caller: where the
// documentation leaves an order open, they choose a hostile one (random delays), and what the documentation forbids,
// they refuse.
//
// Ranks are threads. Give each rank its own device (Settings::device_count, cudaSetDevice): each device has separate
// errors, memory and synchronisation, as it would in a process of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

struct CUstream_st;

namespace harness::emulation {

using Stream = CUstream_st*;

// Launches a kernel: `kernel` runs when all earlier work of the stream is done. If the stream is being captured, it
// becomes a node of the graph instead and runs at every launch of the graph. As with a real launch, cudaGetLastError
// reports a wrong stream. A kernel that throws leaves the device with the sticky error cudaErrorLaunchFailure.
void submit(Stream stream, std::function<void()> kernel);

}  // namespace harness::emulation

namespace harness::fake {

struct Settings {
  int device_count = 1;
  int compute_major = 9;                            // major compute capability of each device; the minor is 0
  std::size_t device_bytes = std::size_t{8} << 30;  // memory of each device; beyond it cudaMalloc fails
  std::size_t pinned_bytes = std::size_t{8} << 30;  // the most of one cudaMallocHost
  // The cublasStatus_t that cublasLtMatmulAlgoGetHeuristic returns for an epilogue that does more than add a bias; 0:
  // it offers algorithms.
  int lt_epilogue_status = 0;
  // The number of a cuBLASLt algorithm that computes wrong results; -1: none.
  int lt_wrong_algorithm = -1;
  std::int64_t lt_wrong_elements = 0;  // how many of its results are wrong; 0: all, and it skips the arithmetic
  bool lt_first_is_in_place = false;   // cuBLASLt's first proposal supports C only in place (C = D)
  // The number of a cuBLASLt algorithm that reads beyond its operands, after which the device is lost; -1: none.
  int lt_fatal_algorithm = -1;
  // The number of the only fast cuBLASLt algorithm; -1: off. If set, the time between two events counts products only,
  // 10 us with this algorithm and 2 ms with any other, however busy the machine.
  int lt_fast_algorithm = -1;
  // The rates of copies from pinned memory to the device, and back; 0: real time. If both are set, the time between two
  // events counts these copies only, and streams overlap fully.
  double copy_in_bytes_per_s = 0, copy_out_bytes_per_s = 0;
};

// Waits for all work and drops every handle, allocation, error and complaint of earlier tests.
void reset(const Settings& settings = {});

// Every refused call and error since the last reset, one entry each. The caller gets a status as well; the entry gives
// the reason, and also covers errors on a stream, where no caller gets a status. Empty after a correct program.
std::vector<std::string> complaints();

// Whether the device got no work since the last cudaDeviceSynchronize.
bool synchronized(int device = 0);

// The priorities of all live streams, in CUDA's numbers and in the order of creation.
std::vector<int> stream_priorities();

// Everything created and not destroyed: memory, streams, events, graphs, communicators, handles. One entry per block of
// memory, and one per kind of the others.
std::vector<std::string> leaks();

}  // namespace harness::fake
