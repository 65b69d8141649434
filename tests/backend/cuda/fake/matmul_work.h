// The arithmetic of a matrix multiplication and its epilogue, in plain loops.
#pragma once

#include "lt_problem.h"

namespace harness::fake {

struct MatmulJob {
  LtProblem problem;
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;  // not read if beta is 0
  void* d = nullptr;
  float alpha = 1, beta = 0;            // if the pointers below are null
  const float* device_alpha = nullptr;  // read when the work runs
  const float* device_beta = nullptr;
  int algorithm = 0;
  double* workspace = nullptr;  // sums are kept there, if given: m x n
};

void multiply(const MatmulJob& job);

}  // namespace harness::fake
