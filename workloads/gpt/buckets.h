#pragma once

#include <string>
#include <vector>

#include "workloads/gpt/stage.h"

namespace harness::gpt {

/// The gradient reduction over data-parallel ranks, cut into buckets. Buckets are cut from the end of the flat gradient
/// buffer, the order in which the backward pass completes gradients, at parameter borders, each at least
/// bucket_size_bytes (the last takes what is left). With overlap a bucket's all-reduce waits for its own gradients
/// alone; without, it waits for the whole backward pass.
class Buckets {
 public:
  Buckets(program::ProgramBuilder& builder, Stage& stage, const config::Settings& settings);

  /// A parameter's gradient is complete on this rank. Emits every bucket that now is, when overlapping.
  void complete(const std::string& parameter);
  /// After the backward pass: the buckets not emitted yet, then the exchange of the tied embedding's gradient.
  void finish();

 private:
  struct Bucket {
    program::View gradients;
    int missing = 0;  // parameters whose gradient is not complete
    int number = 0;
  };
  void reduce(const Bucket& bucket, const std::vector<program::OperationId>& after);

  program::ProgramBuilder& b_;
  Stage& stage_;
  bool overlap_;
  std::vector<Bucket> buckets_;
  std::map<std::string, std::size_t> bucket_of_;
};

}  // namespace harness::gpt
