#include <algorithm>
#include <functional>
#include <numeric>

#include "base/text.h"
#include "evidence/input.h"
#include "evidence/shell.h"
#include "evidence/training_job.h"

// Finds the program that a script starts on every rank through torchrun, srun, mpirun and similar launchers.

namespace harness::evidence {
namespace {

using Words = std::vector<std::string>;

bool is_python(std::string_view name) {
  return name.starts_with("python") && name.find_first_not_of("0123456789.", 6) == std::string_view::npos;
}

bool is_program(const std::string& word) {
  constexpr std::string_view known =
      "torchrun|bash|sh|env|nsys|ncu|numactl|singularity|apptainer|enroot|srun|exec|deepspeed|mpirun|composer|taskset|"
      "timeout|accelerate|accelerate-launch|mpiexec|mpiexec.hydra|ft_launcher|swift|llamafactory-cli|axolotl|"
      "colossalai";
  const std::string name = file_name(word);
  return is_python(name) || name.ends_with(".py") || name.ends_with(".sh") || is_one_of(known, name);
}

class Launch {
 public:
  Launch(const std::string& file, Shell& shell, TrainingJob& job, std::map<std::string, std::string> batch)
      : file_(file), shell_(shell), job_(job), batch_(std::move(batch)) {}

  // Strips launchers and wrappers until the training program is found; returns false if there is none.
  bool read(const ShellLaunch& launch) {
    environment_ = outer_ = launch.environment;
    line_ = launch.line;
    Words words = launch.words;
    constexpr int most = 32;
    for (int i = 0; i < most && !words.empty(); ++i) {
      if (auto program = step(words)) {
        arguments = std::move(*program);
        return true;
      }
    }
    return false;
  }

  Words arguments;  // program arguments, starting with its name
  std::int64_t line() const { return line_; }
  bool by_launcher() const { return !launcher_.empty(); }

  void keep() {
    job_.launcher = launcher_;
    if (ranks_) {
      job_.set("ranks", *ranks_, fmt::format("{}, {}", launcher_, origin()));
    } else if (!ranks_why_.empty()) {
      job_.set_unknown("ranks", ranks_why_);
      for (const std::string& why : unknown_) add_once(job_.refused, why);
    }
    if (per_node_) job_.set("ranks_per_node", *per_node_, origin());
    for (const auto& [name, value] : environment_) {
      if (is_of_interest(name) && !is_unknown(value)) set_last(job_.environment, name, value);
    }
    for (std::string& text : notes_) add_once(job_.notes, std::move(text));
    std::ranges::move(options_, std::back_inserter(job_.settings));
    if (lost_.empty()) return;
    const std::string why = lost_by_.empty() ? "mpirun has no -x for them: ranks on other nodes do not get them"
                                             : lost_by_ + " leaves them out: no rank gets them";
    say(job_.problems, "{} are exported here but {}", and_list(lost_), why);
    job_.headline = fmt::format("{} of {} NCCL settings of this script reach {}", lost_.size(), lost_.size() + kept_,
                                lost_by_.empty() ? "only the first node" : "no rank");
  }

 private:
  // Strips one layer off `words`; returns the program's words once it is found.
  std::optional<Words> step(Words& words) {
    if (auto command = command_of_front_end(words, environment_)) {
      words = std::move(*command);
      return std::nullopt;
    }
    const std::string name = file_name(words.front());
    if (name.ends_with(".py")) return words;
    if (name == "bash" || name == "sh" || name.ends_with(".sh")) return shell_text(words);
    if (is_python(name)) return python(words);
    std::size_t program = 1;
    const bool by_torch = is_one_of("torchrun|ft_launcher", name);  // the latter extends it
    const bool takes_modules = by_torch || is_one_of("accelerate|deepspeed|composer", name);
    constexpr std::string_view naming = "-J|--job-name|-p|--partition|-A|--account|-q|--qos|--comment|--container-name";
    while (program < words.size() && !(takes_modules && is_one_of("-m|--module", words[program])) &&
           (!is_program(words[program]) || (name == "srun" && is_one_of(naming, words[program - 1]))))
      ++program;
    // A program with an unknown name is the first unknown word that is neither an option nor its value.
    for (std::size_t i = 1; program == words.size() && takes_modules && i < words.size(); ++i) {
      const bool value = words[i - 1].starts_with('-') && words[i - 1].find('=') == std::string::npos;
      if (is_unknown(words[i]) && !words[i].starts_with('-') && !value) program = i;
    }
    const bool unknown = program < words.size() && is_unknown(words[program]);
    Words before(words.begin() + 1, words.begin() + static_cast<std::ptrdiff_t>(program));
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(program));
    const bool module = takes_modules && !words.empty() && words.front().starts_with('-');
    if (module) words.erase(words.begin());
    const LauncherOptions options{before};
    if (by_torch) torchrun(options);
    if (name == "srun") srun({slurm_words(before)});
    if (name.starts_with("mpi") || name == "orterun") mpirun(options, name == "mpiexec.hydra");
    if (name == "deepspeed") deepspeed(options);
    if (name == "accelerate" || name == "composer") processes(name, options);
    if (name == "colossalai")
      ranks(name, std::nullopt, count_of(options.value("--nproc-per-node")), "its hostfile says the nodes");
    if (name == "accelerate") {
      for (const auto& [key, value] : accelerate_settings(options))
        options_.push_back({key, value, origin(), shell_.why_unknown(value), "accelerate"});
    }
    if (name == "env") {
      for (const std::string& word : before) {
        if (const std::size_t equals = word.find('='); equals != std::string::npos && !word.starts_with('-'))
          environment_.emplace_back(word.substr(0, equals), word.substr(equals + 1));
      }
    }
    if ((module || unknown) && !words.empty()) return words;
    return std::nullopt;
  }

  std::optional<Words> python(Words& words) {
    std::size_t i = 1;
    while (i < words.size() && words[i].starts_with('-') && words[i] != "-m" && words[i] != "-") {
      i += words[i] == "-W" || words[i] == "-X" ? 2 : 1;
    }
    const bool module = i < words.size() && words[i] == "-m";
    words.erase(words.begin(),
                words.begin() + static_cast<std::ptrdiff_t>(std::min(i + (module ? 1 : 0), words.size())));
    if (words.empty() || words.front() == "-" || words.front() == "-c") {
      words.clear();
      return std::nullopt;
    }
    const auto launcher = mapped(
        "torch.distributed.run=torchrun|torch.distributed.launch=torchrun|deepspeed.launcher.runner=deepspeed|"
        "accelerate.commands.launch=accelerate",
        words.front());
    if (!module || !launcher) return words;
    words.front() = *launcher;
    return std::nullopt;
  }

  // bash -c "…", bash FILE, FILE: a nested script, which may export more. If the file is not given, the words after it
  // may contain the program.
  std::optional<Words> shell_text(Words& words) {
    const bool is_file = words.front().ends_with(".sh");
    const auto option = std::ranges::find_if(words, [](std::string_view word) {
      return word.size() > 1 && word[0] == '-' && word[1] != '-' && word.ends_with('c');
    });
    const std::size_t before = shell_.launches().size();
    const std::int64_t line = line_;
    NameValues environment = outer_;
    for (const auto& [name, value] : environment_) set_last(environment, name, value);
    if (!is_file && option != words.end() && option + 1 != words.end()) {
      shell_.in_process(environment, [&] {
        shell_.run(*(option + 1), line);
        return true;
      });
    } else {
      const auto is_option = [](std::string_view word) { return word.starts_with('-'); };
      words.erase(words.begin(), std::find_if_not(words.begin() + (is_file ? 0 : 1), words.end(), is_option));
      if (words.empty()) return std::nullopt;
      if (is_unknown(words[0]) || !shell_.in_process(environment, [&] { return shell_.run_file(words); })) {
        const std::string name = file_name(words[0]);
        words.erase(words.begin(), std::find_if(words.begin() + 1, words.end(), is_program));
        if (words.empty() && !is_unknown(name)) job_.note("{} is started by this script: give it as well", name);
        return std::nullopt;
      }
    }
    words.clear();
    if (shell_.launches().size() > before) {
      words = shell_.launches().back().words;
      for (const auto& entry : shell_.launches().back().environment) {
        if (std::ranges::find(outer_, entry) == outer_.end()) set_last(environment_, entry.first, entry.second);
      }
    }
    line_ = line;
    return std::nullopt;
  }

  void ranks(std::string launcher, std::optional<std::int64_t> total, std::optional<std::int64_t> per_node,
             const std::string& why) {
    launcher_ = std::move(launcher);
    ranks_ = total && *total <= (1 << 20) ? total : std::nullopt;
    per_node_ = per_node;
    ranks_why_ = ranks_ ? "" : why;
  }
  std::string unknown_or(const std::optional<std::string>& text, std::string otherwise) {
    if (!text || !is_unknown(*text)) return otherwise;
    unknown_.push_back(shell_.why_unknown(*text));
    return unknown_.back();
  }

  void torchrun(const LauncherOptions& o) {
    const auto nodes = o.value("--nnodes"), each = o.value("--nproc-per-node");
    const auto n = nodes ? count_of(nodes) : 1, m = each ? count_of(each) : 1;
    std::string why = unknown_or(each, unknown_or(nodes, ""));
    if (nodes && !n && why.empty()) {
      why = fmt::format("--nnodes {}: elastic", *nodes);
      say(notes_, "elastic ({} nodes): give --set ranks=N", replaced(*nodes, {{':', " to "}}));
    }
    if (each && !m && !is_unknown(*each)) {
      if (why.empty()) why = "--nproc-per-node " + *each;
      say(notes_, "--nproc-per-node {}: all GPUs of a node, whose number is not said: give --set ranks=N", *each);
    }
    ranks("torchrun", n && m ? std::optional(*n * *m) : std::nullopt, m, why);
  }

  void srun(const LauncherOptions& o) {
    const auto in_batch = [&](const char* key) { return count_of(value_at(batch_, key, "")); };
    auto nodes = count_of(o.value("-N|--nodes")), each = count_of(o.value("--ntasks-per-node"));
    const auto total = count_of(o.value("-n|--ntasks"));
    if (!nodes) nodes = in_batch("SLURM_NNODES");
    if (!each) each = in_batch("SLURM_NTASKS_PER_NODE");
    auto ranks_of_job = total;
    if (!ranks_of_job) ranks_of_job = nodes && each ? std::optional(*nodes * *each) : in_batch("SLURM_NTASKS");
    if (!ranks_of_job && nodes) ranks_of_job = nodes;  // one task per node
    if (!each && ranks_of_job && nodes) each = *ranks_of_job / *nodes;
    ranks("srun", ranks_of_job, each, "srun takes them from the job");
    if (const auto passed = o.value("--export")) only("srun --export", *passed);
  }

  void mpirun(const LauncherOptions& o, bool hydra) {
    for (const char* option : {"-ppn", "-genv", "-env", "-genvall", "-genvnone", "-genvlist"})
      hydra = hydra || o.has(option);
    const auto total = count_of(o.value("-np|--np|-n|-c|--n"));
    auto each = count_of(o.value("-N|--npernode|-npernode|-ppn|--ppn"));
    std::int64_t hosts = 0;
    std::vector<std::int64_t> slots;  // of the hosts that say them
    if (const auto list = o.value("-H|--host|-host|-hosts")) {
      for (std::string_view host : split(*list, ',')) {
        ++hosts;
        const std::size_t colon = host.find(':');
        const auto number = colon == host.npos ? std::nullopt : number_in<std::int64_t>(host.substr(colon + 1));
        if (number && *number > 0 && *number <= (1 << 20)) slots.push_back(*number);
      }
    }
    const bool equal = std::ranges::adjacent_find(slots, std::ranges::not_equal_to()) == slots.end();
    std::optional<std::int64_t> of_hosts;
    const auto by = o.value("--map-by|-map-by");
    std::string why = "mpirun takes them from its hostfile";
    if (by && by->starts_with("ppr:")) {
      const std::size_t end = std::min(by->find(':', 4), by->size());
      const bool of_node = by->substr(end).starts_with(":node");
      each = of_node ? count_of(by->substr(4, end - 4)) : std::nullopt;
      if (!of_node) why = "mpirun --map-by counts them by parts of a node";
    } else if (!each && !slots.empty()) {
      if (std::ssize(slots) == hosts) of_hosts = std::accumulate(slots.begin(), slots.end(), std::int64_t{0});
      if (equal) each = slots.front();
    }
    if (each && hosts > 0 && !of_hosts) of_hosts = *each * hosts;
    ranks(hydra ? "mpich" : "open mpi", total ? total : of_hosts, each, unknown_or(o.value("-np|-n"), why));
    if (hydra) {
      const auto passed = o.value("-genvlist");
      if (passed || o.has("-genvnone")) only(passed ? "mpirun -genvlist" : "mpirun -genvnone", passed.value_or(""));
      for (std::size_t i = 0; i + 2 < o.words.size(); ++i) {
        if (o.words[i] == "-genv" || o.words[i] == "-env") environment_.emplace_back(o.words[i + 1], o.words[i + 2]);
      }
      return;
    }
    std::string forwarded;
    for (std::size_t i = 0; i + 1 < o.words.size(); ++i) {
      if (o.words[i] != "-x") continue;
      const std::string& word = o.words[i + 1];
      const std::size_t equals = word.find('=');
      const std::string name = word.substr(0, equals);
      forwarded += name + ",";
      if (equals != std::string::npos) set_last(environment_, name, word.substr(equals + 1));
    }
    const bool several =
        hosts > 1 || o.value("--hostfile|-hostfile|-machinefile|--machinefile") || (total && *total > 8);
    if (several) only("", forwarded);
  }

  // Reduces the environment to the variables in "A,B=1", or keeps it for ALL; records the NCCL variables that are lost.
  // `by`: option that drops them on all nodes; "": the first node keeps them.
  void only(std::string by, const std::string& names) {
    lost_by_ = std::move(by);
    const std::string list = "," + names + ",";
    NameValues left;
    for (auto& [name, value] : environment_) {
      const bool nccl = begins_with(name, "NCCL_|RCCL_");
      if (contains(list, ",ALL,") || contains(list, "," + name + ",") || contains(list, "," + name + "=") ||
          (lost_by_.empty() && name.starts_with("OMPI_"))) {
        kept_ += nccl ? 1 : 0;
        left.emplace_back(name, value);
      } else if (nccl) {
        lost_.push_back(name);
      }
    }
    for (std::string_view item : split(names, ',')) {
      if (const std::size_t equals = item.find('='); equals != item.npos)
        set_last(left, std::string(item.substr(0, equals)), std::string(item.substr(equals + 1)));
    }
    environment_ = std::move(left);
  }

  void deepspeed(const LauncherOptions& o) {
    const auto nodes = o.value("--num-nodes"), each = o.value("--num-gpus"), listed = o.value("--include|-i");
    const bool alone = !nodes && !listed && !o.value("--hostfile|-H");
    const auto n = alone ? 1 : count_of(nodes), m = count_of(each);
    const std::string first = n && nodes ? fmt::format("--num_nodes {}: ", *n) : "";
    const std::string why = listed ? "--include names hosts without their GPUs: give --set ranks=N"
                                   : first + "the deepspeed launcher takes them from its hostfile: give it as well";
    auto total = n && m ? std::optional(*n * *m) : std::nullopt;
    if (listed && !is_unknown(*listed)) total = count_of_included(*listed);
    ranks("deepspeed", total, listed ? std::nullopt : m, unknown_or(nodes, unknown_or(each, why)));
    if (ranks_ && nodes) notes_.emplace_back("the deepspeed launcher passes NCCL* on by itself");
  }

  // Counts the GPUs in "host1:0,1@host2:0,1"; returns nothing if a host lists no GPUs.
  static std::optional<std::int64_t> count_of_included(const std::string& hosts) {
    std::int64_t total = 0;
    for (std::string_view host : split(hosts, '@')) {
      if (!contains(host, ":")) return std::nullopt;
      total += std::ssize(split(host, ','));
    }
    return total;
  }

  void processes(const std::string& name, const LauncherOptions& o) {
    auto total = o.value("--num-processes|--world-size");
    if (!total) total = o.value("-n|--nproc");  // composer: of one node
    const auto machines = count_of(o.value("--num-machines")), n = count_of(total);
    // A configuration read later may define them.
    const std::string why = total ? unknown_or(total, "its configuration says them: give it as well") : "";
    if (name == "accelerate" && machines.value_or(1) > 1 && !total && !o.value("--config-file"))
      say(notes_,
          "without --num_processes, accelerate starts only as many processes on all {} machines together as one has "
          "GPUs",
          *machines);
    ranks(name, n, n && machines ? std::optional(*n / *machines) : std::nullopt, why);
  }

  std::string origin() const { return fmt::format("{}:{}", file_, line_); }

  const std::string& file_;
  Shell& shell_;
  TrainingJob& job_;
  std::map<std::string, std::string> batch_;
  std::string launcher_;
  std::optional<std::int64_t> ranks_, per_node_;
  std::string ranks_why_;
  NameValues environment_, outer_;       // as it reaches the program; as the script sets it
  std::vector<ForeignSetting> options_;  // launcher options
  Words lost_, unknown_;
  std::string lost_by_;
  std::vector<std::string> notes_;
  std::size_t kept_ = 0;
  std::int64_t line_ = 0;
};

}  // namespace

void read_script(const std::string& name, const std::string& text, const NameValues& files, TrainingJob& job,
                 NameValues& documents) {
  job.kind = "launch script";
  std::map<std::string, std::string> others;
  for (const auto& [other, its_text] : files) {
    if (other != name) others.emplace(file_name(other), its_text);
  }
  Shell shell(std::move(others));
  const auto batch = variables_of_batch(text);
  for (const auto& [variable, value] : batch) shell.set(variable, value, false);
  shell.run(text);
  const std::vector<ShellLaunch> launches = shell.launches();
  std::optional<Launch> best;
  int programs = 0;
  for (const ShellLaunch& launch : launches) {
    Launch one(name, shell, job, batch);
    if (!one.read(launch)) continue;
    if (best && best->by_launcher() && !one.by_launcher()) continue;
    programs = best && best->by_launcher() == one.by_launcher() ? programs + 1 : 1;
    best.emplace(std::move(one));
  }
  NameValues scripts;  // scripts written by this one
  for (const auto& [document, its_text] : shell.documents())
    (is_launch_script(its_text) ? scripts : documents).emplace_back(document, its_text);
  const std::size_t before = job.refused.size();
  for (const std::string& what : shell.refused()) job.refused.push_back(what);
  if (!best && !scripts.empty()) return read_script(scripts.back().first, scripts.back().second, files, job, documents);
  if (!best)
    return say(job.problems,
               "{}: no training program is started here that harness can find: give the script that starts one",
               file_name(name));
  best->keep();
  if (programs > 1) job.note("{} launches: this answers the last, of line {}", programs, best->line());
  const std::string origin = fmt::format("{}:{}", file_name(name), best->line());
  job.settings.push_back({"program", best->arguments.front(), origin});
  take_arguments(best->arguments, shell, origin, job);
  // Sorted by line; unknown values that are needed follow with their keys.
  std::ranges::stable_sort(job.refused.begin() + static_cast<std::ptrdiff_t>(before), job.refused.end(), {},
                           [](const std::string& what) { return integer_after(what, "line ").value_or(0); });
}

}  // namespace harness::evidence
