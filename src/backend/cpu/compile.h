#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/bound.h"
#include "backend/cpu/attention.h"
#include "backend/cpu/onednn.h"

namespace harness::cpu {

/// Turns compute operations into calls on fixed addresses: products are generated, scratch is allocated here, and the
/// calls allocate nothing. The calls are made one at a time, on one thread, whose OpenMP threads they use. Must outlive
/// them.
class Compiler {
 public:
  Compiler(const backend::ExecutableRequest& request, std::function<backend::Tensor(const program::View&)> tensor);
  ~Compiler();
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  std::function<void()> compile(const program::Operation& op);

 private:
  using Run = std::function<void()>;
  Run prepare(const backend::Bound<program::Matmul>& op);
  Run prepare_widened(const backend::Bound<program::Matmul>& op);
  Run prepare(const backend::Bound<program::Attention>& op);
  Run prepare(const backend::Bound<program::AttentionBackward>& op);
  std::shared_ptr<AttentionKernel> attention(const AttentionKernel::Form& form);

  std::function<backend::Tensor(const program::View&)> tensor_;
  int threads_;
  std::shared_ptr<Workspace> workspace_ = std::make_shared<Workspace>();
  std::vector<float> scratch_;  // the largest that any operation needs: they run one after the other
  backend::KernelContext context_;
  std::map<AttentionKernel::Form, std::shared_ptr<AttentionKernel>> attention_;
  std::array<std::vector<bf16>, 2> wide_;  // factors of the largest 8-bit product, as they are multiplied
};

}  // namespace harness::cpu
