#include "program/program.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "base/text.h"
#include "program/builder.h"

namespace harness::program {
namespace {

class RoleChecker {
 public:
  RoleChecker(const ProgramSet& set, int role, std::vector<std::string>& problems)
      : set_(set), program_(set.roles[role]), rank_(set.first_rank(role)), problems_(problems) {}

  void check() {
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      if (program_.buffers[b].kind == BufferKind::input || program_.buffers[b].kind == BufferKind::output) {
        written_.push_back({static_cast<BufferId>(b), 0, program_.buffers[b].count});
      }
    }
    list(program_.init, "init");
    // Persistent buffers keep what init wrote until the step begins.
    for (const Operation& op : program_.init) {
      if (!sound_) continue;
      visit_accesses(op.action, [&](Access access, const View& view) {
        if (access == Access::read || program_.buffer_of(view).kind != BufferKind::persistent) return;
        written_.push_back(view);
      });
    }
    list(program_.step, "step");
  }

  bool sound() const { return sound_; }

 private:
  void say(OperationId id, const Operation& op, const char* which, const std::string& what) {
    problems_.push_back(fmt::format("rank {}, {} operation {} ({}): {}", rank_, which, id, title(op), what));
  }

  std::string show(const View& v) const {
    return fmt::format("{}[{}..{})", program_.buffers[v.buffer].name, v.offset, v.offset + v.all_parts().count);
  }

  // Checks views, streams, waits, element types and shapes, on which later checks rely.
  void structure(const std::vector<Operation>& ops, const char* which) {
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Operation& op = ops[i];
      const auto id = static_cast<OperationId>(i);
      const auto unsound = [&](const std::string& what) {
        sound_ = false;
        say(id, op, which, what);
      };
      if (op.stream < 0 || std::cmp_greater_equal(op.stream, program_.streams.size()))
        unsound(fmt::format("stream {} does not exist", op.stream));
      for (const OperationId w : op.waits) {
        if (w < 0 || w >= id) unsound(fmt::format("waits for operation {}, which does not stand before it", w));
      }
      visit_accesses(op.action, [&](Access access, const View& view) {
        if (!within_buffer(view)) {
          unsound(fmt::format("a view of buffer {} from element {} on, {} long, lies outside it", view.buffer,
                              view.offset, view.all_parts().count));
        }
        if (!has_owners(view)) {
          unsound(fmt::format("touches its own of {} parts, but the {} axis has {} ranks", view.parts,
                              name_of(view.follows), set_.layout[view.follows]));
        }
        if (!sound_ || access == Access::read) return;
        if (program_.buffer_of(view).kind == BufferKind::input)
          say(id, op, which, fmt::format("writes {}, an input", show(view)));
      });
      if (const GroupId g = group_of(op.action); g >= 0) {
        if (std::cmp_greater_equal(g, set_.groups.size())) {
          unsound(fmt::format("group {} does not exist", g));
        } else if (!set_.groups[g].contains(set_.layout.coordinates(rank_))) {
          unsound(fmt::format("rank {} is not in group {}", rank_, set_.groups[g].name));
        }
      }
      if (!sound_) continue;
      if (const std::string wrong = check_shapes(set_, program_, rank_, op.action); !wrong.empty())
        say(id, op, which, wrong);
    }
  }

  // Whether there are as many parts as ranks along the axis, or as replicas on a node.
  bool has_owners(const View& view) const {
    const bool of_node = view.follows == Axis::data && view.parts == set_.layout.replicas_of_node;
    return view.parts == 1 || view.parts == set_.layout[view.follows] || of_node;
  }

  bool within_buffer(const View& view) const {
    const std::size_t buffer = view.buffer;
    if (buffer >= program_.buffers.size() || view.offset < 0 || view.count <= 0) return false;
    return view.offset + view.all_parts().count <= program_.buffers[buffer].count;
  }

  // Whether unread results are a fault. Steps that repeat one operation overwrite them on purpose, and a layer that is
  // recomputed for its backward pass runs in full, with products whose results were needed before.
  static bool trains(const std::vector<Operation>& ops) {
    return std::ranges::any_of(ops, [](const Operation& op) { return std::holds_alternative<AdamW>(op.action); });
  }

  // Checks that every read sees a write, that conflicting accesses have a defined order, and that training uses every
  // result: a reduction that is overwritten before it is read loses a micro-batch in the gradients.
  void hazards(const std::vector<Operation>& ops, const char* which) {
    const HappensBefore before(ops, program_.streams.size());
    AccessMap map;
    for (const View& v : written_) map.assume_written(v);
    std::vector<char> has_result(ops.size()), used(ops.size());
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Operation& op = ops[i];
      const auto id = static_cast<OperationId>(i);
      const auto follows = [&](const View& view) {
        return [&, view](OperationId other) {
          const Operation& earlier = ops[other];
          if (other == id || earlier.stream == op.stream || before.ordered(other, earlier.stream, id)) return;
          say(id, op, which,
              fmt::format("touches {} in no defined order with operation {} ({}) on stream {}; a wait is missing",
                          show(view), other, title(earlier), program_.streams.at(earlier.stream)));
        };
      };
      // Reads come before writes: an operation in place reads what was there before.
      visit_accesses(op.action, [&](Access access, const View& view) {
        if (access == Access::write) return;
        const auto reads_result_of = [&](OperationId other) {
          used[other] = 1;
          follows(view)(other);
        };
        bool reported = false;
        const auto unwritten = [&] {
          if (!reported) say(id, op, which, fmt::format("reads {}, which nothing has written", show(view)));
          reported = true;
        };
        map.read(id, view, reads_result_of, unwritten);
      });
      visit_accesses(op.action, [&](Access access, const View& view) {
        if (access == Access::read) return;
        map.write(id, view, follows(view));
        has_result[i] = 1;
      });
    }
    map.each_last_writer([&](BufferId buffer, OperationId writer) {
      if (program_.buffers[buffer].kind != BufferKind::transient) used[writer] = 1;
    });
    if (!trains(ops)) return;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (has_result[i] == 0 || used[i] != 0 || ops[i].label.recomputed) continue;
      say(static_cast<OperationId>(i), ops[i], which,
          fmt::format("nothing reads its result before it is overwritten or the {} ends", which));
    }
  }

  // A communicator stays on one stream: otherwise its operations could start in a different order on another rank.
  void one_stream_per_communicator(const std::vector<Operation>& ops, const char* which) {
    std::map<std::pair<int, int>, StreamId> stream_of;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      std::pair<int, int> communicator{0, group_of(ops[i].action)};
      if (const Peer* peer = peer_of(ops[i].action)) communicator = {1, static_cast<int>(peer->axis)};
      if (communicator.second < 0) continue;
      const auto [it, fresh] = stream_of.emplace(communicator, ops[i].stream);
      if (!fresh && it->second != ops[i].stream) {
        say(static_cast<OperationId>(i), ops[i], which,
            fmt::format("its communicator is also used on stream {}; use one stream only",
                        program_.streams[it->second]));
        return;
      }
    }
  }

  void list(const std::vector<Operation>& ops, const char* which) {
    structure(ops, which);
    if (!sound_) return;
    hazards(ops, which);
    one_stream_per_communicator(ops, which);
  }

  const ProgramSet& set_;
  const Program& program_;
  int rank_;
  std::vector<std::string>& problems_;
  bool sound_ = true;
  std::vector<View> written_;
};

}  // namespace

std::vector<std::string> verify(const ProgramSet& set, std::size_t limit) {
  std::vector<std::string> problems;
  bool sound = true;
  for (int role = 0; role < static_cast<int>(set.roles.size()); ++role) {
    RoleChecker checker(set, role, problems);
    checker.check();
    sound = sound && checker.sound();
  }
  if (sound) {
    match_communication(set, &Program::init, "init", problems);
    match_communication(set, &Program::step, "step", problems);
  }
  problems.resize(std::min(problems.size(), limit));
  return problems;
}

}  // namespace harness::program
