#include "job/mpi/launcher.h"

#include <array>
#include <cstdlib>

#include "base/error.h"
#include "base/text.h"

namespace harness::mpi {
namespace {

std::optional<int> integer(const std::optional<std::string>& text) {
  return text ? number_in<int>(*text) : std::nullopt;
}

struct Names {
  const char* size;
  const char* rank;
  const char* on_node;  // the ranks of this process's node; "": no variable says it
};
// SLURM_NTASKS is not among them: a batch script has it too, where one process is right.
constexpr std::array<Names, 6> known = {{{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                                         {"PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS"},
                                         {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"},
                                         {"MPI_WORLD_SIZE", "MPI_WORLD_RANK", ""},
                                         {"FLUX_JOB_SIZE", "FLUX_TASK_RANK", ""},
                                         {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_NTASKS_PER_NODE"}}};

}  // namespace

std::optional<std::string> own_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::optional<LauncherClaim> launcher_claim(const Lookup& lookup) {
  for (const Names& names : known) {
    const auto size = integer(lookup(names.size));
    const auto rank = integer(lookup(names.rank));
    if (size && rank) {
      return LauncherClaim{names.size, *size, *rank, integer(lookup(names.on_node)).value_or(0)};
    }
  }
  return std::nullopt;
}

machine::GpuEnvironment gpu_environment(const Lookup& lookup) {
  machine::GpuEnvironment e;
  const auto visible = lookup("CUDA_VISIBLE_DEVICES");
  e.restricted = visible.has_value();
  e.visible = visible.value_or("");
  // With ConstrainDevices each task of a Slurm step sees its own GPUs only, numbered from 0: a "0" of one is another
  // than that of the next.
  e.own_task = lookup("SLURM_LOCALID").value_or("");
  return e;
}

void check_launch(const std::optional<LauncherClaim>& claim, int mpi_size, const std::string& mpi_library) {
  if (!claim || claim->size <= 1 || mpi_size != 1) return;
  if (claim->rank != 0) throw Error("");
  fail(
      "the launcher started {} processes ({}), but MPI reports that each is the only one: the launcher does not match "
      "the MPI library of this program.\n"
      "  MPI library: {}\n"
      "  Use the mpirun that belongs to this library (`which -a mpirun` lists all that are installed). Under Slurm, "
      "`srun --mpi=list` lists what srun supports: try --mpi=pmix or --mpi=pmi2",
      claim->size, claim->variable, mpi_library);
}

double seconds_until_sigkill(const Lookup& lookup) {
  // Open MPI's mpirun turns SIGINT and SIGTERM into SIGTERM for every rank and kills them after this many seconds.
  if (!lookup("OMPI_COMM_WORLD_SIZE")) return 0;
  for (const char* name : {"OMPI_MCA_odls_base_sigkill_timeout", "PRTE_MCA_odls_base_sigkill_timeout"}) {
    if (const auto seconds = integer(lookup(name))) return *seconds;
  }
  return 1;
}

}  // namespace harness::mpi
