#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"
#include "program/program.h"

namespace harness::config {

enum class BackendKind : std::uint8_t { cpu, cuda, sim };

/// A backend as other rooms know it. None of them asks for its name.
struct BackendTraits {
  BackendKind kind = BackendKind::cpu;
  std::string_view name = {};
  /// The backend whose step it predicts, in virtual time: it honours what that one honours. Its own kind: it computes.
  BackendKind stands_for = kind;
  /// A rank has a GPU of its own, whose peak and memory its hardware file states. Else ranks share a node's cores and
  /// memory, each with a limit of its own, and the peak of products is measured where nobody states it.
  bool ranks_are_gpus = false;
  bool has_tf32 = false;
  bool tunes = false;           // has choices that are timed before the first round
  bool uses_nccl = false;       // and so leaves its log
  program::FusedSet fused = 0;  // forms that it runs as they stand
  double worker_bytes = 0;      // on the device, of a worker beside its Program's arena
  bool predicts() const { return stands_for != kind; }
  std::string_view caveat = {};  // what a reader of its numbers must know: sentences; "": nothing
};

const BackendTraits& traits_of(BackendKind kind);
/// By the name that a result file has. Of a backend that this version does not know: a GPU per rank, and nothing else.
const BackendTraits& traits_of(std::string_view name);

/// The fused forms that a step with these settings has on the backend; the others are lowered (program/lower.h).
program::FusedSet fused_for(BackendKind kind, const Settings& settings);

const char* name_of(BackendKind kind);
std::vector<std::string> backend_names();
/// Throws Error naming what is allowed.
BackendKind parse_backend(std::string_view text);
/// The backend for a machine with or without GPUs.
BackendKind usual_backend(bool has_gpus);

}  // namespace harness::config
