#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"
#include "program/program.h"

namespace harness::config {

enum class BackendKind : std::uint8_t { cpu, cuda, sim };

/// A backend's properties. Other code decides by these, never by the backend's name.
struct BackendTraits {
  BackendKind kind = BackendKind::cpu;
  std::string_view name = {};
  /// The backend whose step it predicts in virtual time and whose variables it honours. Its own kind: it computes.
  BackendKind stands_for = kind;
  /// Each rank has its own GPU, and the hardware file states its peak and memory. If false, ranks share a node's cores
  /// and memory, each with its own limit, and the peak of matrix products is measured unless it is given.
  bool ranks_are_gpus = false;
  bool has_tf32 = false;
  bool tunes = false;           // times alternatives before the first round
  bool uses_nccl = false;       // communicates with NCCL, which leaves its log
  program::FusedSet fused = 0;  // forms that it runs without lowering
  double worker_bytes = 0;      // device memory of a worker outside its Program's arena
  bool predicts() const { return stands_for != kind; }
  std::string_view caveat = {};  // sentences that a reader of its numbers must know; "": none
};

const BackendTraits& traits_of(BackendKind kind);
/// Looks up the name in a result file. For an unknown backend, returns traits with `ranks_are_gpus` and nothing else.
const BackendTraits& traits_of(std::string_view name);

/// Returns the fused forms in a step with these settings on the backend; lower() replaces the rest (program/program.h).
program::FusedSet fused_for(BackendKind kind, const Settings& settings);

const char* name_of(BackendKind kind);
std::vector<std::string> backend_names();
/// Throws Error naming what is allowed.
BackendKind parse_backend(std::string_view text);
/// Returns the default backend for a machine with or without GPUs.
BackendKind usual_backend(bool has_gpus);

}  // namespace harness::config
