// A test's settings of the stand-ins for the CUDA runtime, cuBLASLt and NCCL in this folder, and its questions to them.
//
// The stand-ins define those C functions of the three libraries' own headers that the backend calls. Linked in place of
// the libraries they run the cuda backend on a machine without a GPU: device memory is host memory behind bounds, a
// stream is a queue with a thread of its own, a graph is a graph. They are here to find mistakes of the caller: where
// the documentation leaves an order open the stand-ins choose badly on purpose (random delays), and what the
// documentation forbids they refuse.
//
// Ranks are threads. Give each a device of its own (Settings::device_count, cudaSetDevice): a device has errors,
// memory and synchronisation to itself, as a process has.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

struct CUstream_st;

namespace harness::emulation {

using Stream = CUstream_st*;

// Launches a kernel: `kernel` runs when all earlier work of the stream is done, or becomes a node of the graph that the
// stream is captured into (and then runs at every launch of it). As with a real launch, a wrong stream is reported by
// cudaGetLastError. A kernel that throws leaves the device with the sticky error cudaErrorLaunchFailure.
void submit(Stream stream, std::function<void()> kernel);

}  // namespace harness::emulation

namespace harness::fake {

struct Settings {
  int device_count = 1;
  int compute_major = 9;  // the compute capability's first number, of each device; the second is 0
  std::size_t device_bytes = std::size_t{8} << 30;  // of each device; beyond it cudaMalloc fails
  // The answer of cublasLtMatmulAlgoGetHeuristic where an epilogue does more than add a bias, a cublasStatus_t; 0:
  // offers.
  int lt_epilogue_status = 0;
  // The number of an algorithm of cuBLASLt's that computes something else, and in no time; -1: none does.
  int lt_wrong_algorithm = -1;
  std::int64_t lt_wrong_elements = 0;  // how many of its results are something else; 0: all
  bool lt_first_is_in_place = false;   // cuBLASLt's first proposal adds nothing but what its result holds
  // The number of an algorithm of cuBLASLt's that reads beyond its operands, after which the device is lost; -1: none.
  int lt_fatal_algorithm = -1;
  // The number of the one algorithm of cuBLASLt's that is not slow; -1: none is. With one, the time between two events
  // is that of the products alone, 10 us with this algorithm and 2 ms with another, however busy the machine.
  int lt_fast_algorithm = -1;
  // The rates of copies that bring pinned memory to the device, and that bring it back; 0: they take what they take.
  // With both, the time between two events is that of such copies alone, whole streams beside each other.
  double copy_in_bytes_per_s = 0, copy_out_bytes_per_s = 0;
};

// Waits for all work, drops every handle, allocation, error and complaint of earlier tests, and starts afresh.
void reset(const Settings& settings = {});

// All that was refused or went wrong since the last reset, in words, one entry each. A status is returned to the caller
// as well; here is why, and what happened where no caller could be told (on a stream). Empty after a correct program.
std::vector<std::string> complaints();

// Whether the device was given nothing since it was last waited for as a whole (cudaDeviceSynchronize).
bool synchronized(int device = 0);

// The priorities of the streams that there are, as CUDA numbers them, in the order of their making.
std::vector<int> stream_priorities();

// All that was made and not destroyed: memory, streams, events, graphs, communicators, handles. One entry each.
std::vector<std::string> leaks();

}  // namespace harness::fake
