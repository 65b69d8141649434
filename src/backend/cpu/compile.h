#pragma once

#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/attention.h"
#include "backend/cpu/onednn.h"
#include "backend/tensor.h"

namespace harness::cpu {

/// Turns compute operations into calls on fixed addresses: products are generated, scratch is allocated here, and the
/// calls allocate nothing. The calls are made one at a time, on one thread, whose OpenMP threads they use.
class Compiler {
 public:
  Compiler(const ExecutableRequest& request, std::function<Tensor(const View&)> tensor);
  ~Compiler();
  std::function<void()> compile(const Operation& op);

 private:
  template <class A>
  std::function<void()> of(const A& action);
  std::function<void()> product(const Matmul& op);
  std::shared_ptr<AttentionKernel> attention(const AttentionShape& shape, DType type, bool backward);
  void need_scratch(std::int64_t floats);
  Tensor at(const View& view) const { return view.present() ? tensor_(view) : Tensor{}; }
  int coordinate(Axis axis) const { return at_[axis]; }

  std::function<Tensor(const View&)> tensor_;
  Coordinates at_;
  std::uint64_t seed_;
  int threads_;
  std::shared_ptr<Workspace> workspace_ = std::make_shared<Workspace>();
  std::shared_ptr<std::vector<float>> scratch_ = std::make_shared<std::vector<float>>();
  using AttentionKey = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                                  std::int64_t, bool, DType, bool>;
  std::map<AttentionKey, std::shared_ptr<AttentionKernel>> attention_;
};

}  // namespace harness::cpu
