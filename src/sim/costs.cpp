#include "sim/costs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "base/text.h"
#include "program/count.h"

namespace harness::sim {
namespace {

using program::Program;

bool is_over_tensor(const program::Group& group) {
  return group.axes == program::AxisSet::of({program::Axis::tensor});
}

class Costs {
 public:
  Costs(const RankClasses& classes, const Device& device, const Network& network,
        const config::Calibration& calibration, const config::Settings& settings, const Condition& condition,
        double& largest_message_bytes)
      : classes_(classes),
        device_(device),
        network_(network),
        calibration_(calibration),
        settings_(settings),
        condition_(condition),
        host_paces_(host_paces(classes.set().layout, settings, calibration.software)),
        largest_message_bytes_(largest_message_bytes) {}

  Cost operator()(int rank_class, program::OperationId id) {
    return host_paces_ ? paced(rank_class)[static_cast<std::size_t>(id)] : cost_of(rank_class, id);
  }

 private:
  Cost cost_of(int rank_class, program::OperationId id) {
    const Program& program = classes_.program(rank_class);
    const program::Operation& op = program.step[id];
    const config::Software& software = calibration_.software;
    Cost cost;
    if (std::holds_alternative<program::Quantise>(op.action)) {
      // Calibrations count casts as a part of the products that read them: linear_seconds().
      if (!op.waits.empty()) cost.alone = ticks_of(software.hop_s);
      return cost;
    }
    if (program::is_communication(op.action)) {
      cost = communication_cost(rank_class, op);
    } else {
      Device device = device_;  // with its clocks as they are; moving memory keeps its rate
      const double clock = condition_.clock_of(classes_.list()[rank_class].first_rank);
      for (double* rate : {&device.flops, &device.low_flops, &device.attention_flops}) *rate *= clock;
      cost.alone = ticks_of(computation_seconds(rank_class, op, device));
    }
    if (!op.waits.empty()) cost.alone += ticks_of(software.hop_s);
    cost.host =
        ticks_of(software.host_s * (software.cost_of(op).host_operations + (adds_up_apart(program, op) ? 1 : 0)));
    return cost;
  }

  const std::vector<Cost>& paced(int rank_class) {
    if (rank_class == paced_class_) return paced_;
    paced_class_ = rank_class;
    paced_.clear();
    const Program& program = classes_.program(rank_class);
    for (program::OperationId id = 0; std::cmp_less(id, program.step.size()); ++id)
      paced_.push_back(cost_of(rank_class, id));
    stretch_by_host(classes_.set(), program, paced_, meet_in_layers(classes_.set().layout, settings_),
                    calibration_.software.host_power);
    return paced_;
  }

  // Whether a separate kernel adds the gradient of a weight to those of earlier micro-batches.
  bool adds_up_apart(const Program& program, const program::Operation& op) const {
    const auto* product = std::get_if<program::Matmul>(&op.action);
    return product != nullptr && calibration_.software.accumulation_bytes > 0 &&
           program::is_weight_gradient(program, *product) &&
           program.buffer_of(product->out).type == program::DType::f32;
  }

  // The size of an element of an activation.
  double element_bytes() const {
    return static_cast<double>(program::size_of(config::row_of(settings_.precision).storage));
  }

  double computation_seconds(int rank_class, const program::Operation& op, const Device& device) const {
    const Program& program = classes_.program(rank_class);
    const config::Software& software = calibration_.software;
    const std::optional<program::AnyAttention> attention = program::attention_of(op.action);
    // Curves are of fused attention: unfused attention takes another time for the same work.
    const config::Curve* curve =
        attention && attention->unfused
            ? nullptr
            : calibration_.measured.computation(settings_.precision, program::name_of(op.action));
    if (curve != nullptr) {
      const bool computes = program::flop_of(op.action).model > 0;
      const auto law = [&](double work) {
        return computes ? work / (device_.flops * calibration_.product_share) + software.kernel_s
                        : memory_seconds(work, device_, calibration_);
      };
      // Ranks that share a sequence each have a part of the queries and meet all keys.
      const int parts = attention ? settings_.sequence_ranks() : 1;
      double seconds = seconds_by(*curve, parts * program::work_of(program, op.action), law);
      if (computes) seconds *= device_.flops / device.flops;  // slower clocks slow down computation only
      return attention ? ring_seconds(rank_class, *attention, seconds, device) : seconds;
    }
    if (attention) return attention_seconds_of(rank_class, op, *attention, device);
    const double bytes = program::needed_bytes(program, op.action) * software.cost_of(op).bytes;
    if (const auto* product = std::get_if<program::Matmul>(&op.action))
      return linear_seconds(program, op, *product, bytes, device);
    return memory_seconds(bytes, device, calibration_);
  }

  double attention_seconds_of(int rank_class, const program::Operation& op, const program::AnyAttention& attention,
                              const Device& device) const {
    const config::Software& software = calibration_.software;
    const program::AttentionShape& s = attention.shape;
    const bool backward = attention.backward;
    if (!attention.unfused) {
      // Ranks that share a sequence each have a part of the queries and meet all keys, one part after the other.
      // Documents of a sequence are as efficient as sequences of their length.
      const double seen = (1 - attention.unseen) * static_cast<double>(s.key_length);
      const auto keys = std::max<std::int64_t>(1, std::llround(seen));
      const double alone_s = attention_seconds(settings_.sequence_ranks() * program::flop_of(op.action).model, keys,
                                               s.head_dim, backward, device, calibration_);
      return ring_seconds(rank_class, attention, alone_s, device);
    }
    // Unfused attention computes the full square, without skipping the upper triangle.
    const auto product = [&](std::int64_t n, std::int64_t k) {
      const double moved = element_bytes() * static_cast<double>(s.batch * s.heads) *
                           static_cast<double>(s.query_length * n + s.query_length * k + n * k);
      return product_seconds(s.query_length, n, k, s.batch * s.heads, moved, device, calibration_);
    };
    const double pair_s = product(s.key_length, s.head_dim) + product(s.head_dim, s.key_length);
    const double each = backward ? software.score_bytes_backward : software.score_bytes_forward;
    const double copied = backward ? software.copies_backward : software.copies_forward;
    const double scores = static_cast<double>(s.batch * s.heads) * static_cast<double>(s.query_length) *
                          static_cast<double>(s.key_length);
    const double result = element_bytes() * static_cast<double>(s.batch * s.heads * s.query_length * s.head_dim);
    return (backward ? 2 : 1) * pair_s + memory_seconds(each * scores + copied * result, device, calibration_);
  }

  // The time of one of a layer's products, or the head's.
  double linear_seconds(const Program& program, const program::Operation& op, const program::Matmul& product,
                        double bytes, const Device& device) const {
    const config::Software& software = calibration_.software;
    const bool low = config::is_low(settings_.precision) && op.label.layer >= 0;
    const int bits = low ? config::row_of(settings_.precision).product_bits : 16;
    // Calibrations count the bytes of bf16 factors, whatever their bits.
    if (product.a_scale.present())
      bytes += software.cost_of(op).bytes * static_cast<double>(product.m * product.k + product.k * product.n);
    double seconds = product_seconds(product.m, product.n, product.k, 1, bytes, device, calibration_, bits);
    if (adds_up_apart(program, op)) {
      const double parameters = static_cast<double>(product.m) * static_cast<double>(product.n);
      seconds += memory_seconds(software.accumulation_bytes * parameters, device, calibration_);
    }
    if (!low || program::is_weight_gradient(program, product)) return seconds;
    // Casts cover the input of each product and the gradient of its result, before any gather.
    const std::string_view what = op.label.what;
    const bool takes_stream =
        what == "qkv" || what == "fc1" || what == "projection input gradient" || what == "fc2 input gradient";
    const auto own = takes_stream && settings_.sequence_parallel ? settings_.layout[program::Axis::tensor] : 1;
    const double elements = static_cast<double>(product.m) * static_cast<double>(product.k) / own;
    const auto cast = software.cast_bytes.find(settings_.precision);
    const double each = cast == software.cast_bytes.end() ? 0 : cast->second;
    return seconds + (each > 0 ? memory_seconds(each * elements, device, calibration_) : 0);
  }

  // Ring attention (Liu et al. 2023, arXiv 2310.01889): keys and values travel round the ring while attention runs on
  // the previous ones, backward with their gradients. Each result but the first is added to the sum in f32.
  double ring_seconds(int rank_class, const program::AnyAttention& attention, double alone_s,
                      const Device& device) const {
    constexpr double start_s = 20e-6, share_of_nvlink = 0.8, bytes_of_sum = 12, disturbs = 0.05;
    const int others = settings_.sequence_ranks() - 1;
    if (others == 0) return alone_s;
    const program::AttentionShape& s = attention.shape;
    const int passes = attention.backward ? 2 : 1;
    const RingLinks links = ring_links(classes_.set().layout, settings_.sequence_ranks(),
                                       classes_.list()[rank_class].first_rank, network_, condition_);
    require_links(links.within_node, !links.within_node);
    const double rate = links.within_node ? network_.rank_bytes_per_s * share_of_nvlink
                                          : network_.node_bytes_per_s / std::max(1, network_.ranks_of_node) *
                                                network_share(network_, calibration_) * links.left;
    const auto tokens = static_cast<double>(s.batch * s.key_length * s.head_dim);
    const double keys_bytes = 2 * element_bytes() * tokens * static_cast<double>(s.kv_heads());
    const double ring_s = passes * others * (start_s + keys_bytes / rate);
    const double sums_s =
        passes * others * memory_seconds(bytes_of_sum * tokens * static_cast<double>(s.heads), device, calibration_);
    return std::max(alone_s, ring_s) + sums_s + disturbs * ring_s;
  }

  Cost communication_cost(int rank_class, const program::Operation& op) {
    constexpr double of_message = 0.2;  // NCCL runs a message on 2 to 8 thread blocks, a collective on 16 to 32
    if (const auto kind = program::collective_of(op.action)) return collective_cost(rank_class, op, *kind);
    const program::Peer& peer = *program::peer_of(op.action);
    const bool sends = std::holds_alternative<program::Send>(op.action);
    const int sender = sends ? rank_class : classes_.at_peer(rank_class, peer);
    const double bytes = program::message_bytes(classes_.program(rank_class), op.action);
    return {.alone = ticks_of(message_seconds_to(sender, {peer.axis, sends ? peer.offset : -peer.offset}, bytes)),
            .takes = of_message * calibration_.taken_by_communication,
            .keeps = calibration_.kept_by_communication};
  }

  Cost collective_cost(int rank_class, const program::Operation& op, program::Collective kind) {
    const Program& program = classes_.program(rank_class);
    const program::GroupId group = program::group_of(op.action);
    double bytes = program::message_bytes(program, op.action);
    if (const auto* sum = std::get_if<program::AllReduce>(&op.action);
        sum != nullptr && op.label.phase == program::Phase::gradient_sync) {
      const auto element = static_cast<double>(program::size_of(program.buffer_of(sum->data).type));
      bytes *= std::min(1.0, calibration_.software.gradient_bytes / element);
    }
    // Weights of fewer bits are gathered as one byte each, although the Program types them as bf16 (Megatron-LM:
    // --fp8-param-gather).
    const bool over_tensor = is_over_tensor(classes_.set().groups[group]);
    const bool of_weights =
        kind == program::Collective::all_gather && !over_tensor && op.label.phase != program::Phase::gradient_sync;
    if (config::is_low(settings_.precision) && of_weights) bytes /= 2;
    largest_message_bytes_ = std::max(largest_message_bytes_, bytes);
    const Spread& where = spread(rank_class, group);
    const CollectiveTime& time =
        collectives_.try_emplace({kind, where}, kind, where, network_, calibration_, settings_).first->second;
    Cost cost;
    double seconds = time.seconds(bytes);
    // Hidden communication still takes its share of the device (Transformer Engine's userbuffers).
    const bool divided = kind == program::Collective::all_gather || kind == program::Collective::reduce_scatter;
    const bool hides = settings_.tp_overlap && settings_.workload == config::training_workload;
    if (hides && divided && where.nodes == 1 && over_tensor) {
      const double hidden = calibration_.tensor_hidden;
      seconds *= 1 - hidden + calibration_.taken_by_communication * hidden;
    }
    cost.alone = ticks_of(seconds);
    if (!calibration_.software.computes_beside_tensor && !settings_.sequence_parallel && over_tensor) {
      cost.takes = Cost::all_of_it;
      return cost;
    }
    cost.takes = std::min(calibration_.taken_by_communication * time.more_blocks(bytes), Cost::all_of_it);
    cost.keeps = calibration_.kept_by_communication;
    return cost;
  }

  // Returns the time of a message from a rank of this class to its peer.
  double message_seconds_to(int rank_class, const program::Peer& peer, double bytes) {
    const program::Layout& layout = classes_.set().layout;
    const int sender = classes_.list()[rank_class].first_rank;
    const auto [known, fresh] = senders_.try_emplace({peer.axis, peer.offset});
    if (fresh) known->second = senders_along(peer, layout, network_);
    const int senders = known->second[sender];
    require_links(senders == 0, senders > 0);
    const int receiver = layout.neighbour(sender, peer.axis, peer.offset);
    const double share = std::min(condition_.network_of(sender), condition_.network_of(receiver));
    return message_seconds(bytes, senders, tensor_spread(classes_.class_of(receiver)), network_, calibration_, share);
  }

  // Returns the spread of the tensor group of a class.
  const Spread& tensor_spread(int rank_class) {
    static constexpr Spread alone;
    const std::vector<program::Group>& groups = classes_.set().groups;
    const auto tensor = std::ranges::find_if(groups, is_over_tensor);
    return tensor == groups.end() ? alone : spread(rank_class, static_cast<program::GroupId>(tensor - groups.begin()));
  }

  void require_links(bool within_node, bool between_nodes) const {
    if (between_nodes && !(network_.node_bytes_per_s > 0)) {
      fail(
          "the ranks stand on several nodes, and nothing says how fast a node's network is: add `fabric: {{node: 400 "
          "GB/s}}`, or `node: {{network: 400 GB/s}}` to a hardware file of your own");
    }
    if (between_nodes && !(calibration_.network_share > 0)) {
      fail(
          "the ranks stand on several nodes, and calibration {} was measured on one: it has no `network`; run "
          "`calibrate` on several nodes, or name another calibration",
          calibration_.file);
    }
    if (within_node && !(network_.rank_bytes_per_s > 0))
      fail(
          "ranks share a node, and nothing says how fast one of their GPUs reaches the others: add `fabric: {{rank: "
          "RATE}}`, or `nvlink` to a hardware file of your own, one direction: some 25 GB/s over PCIe 4.0, 50 GB/s "
          "over PCIe 5.0, 450 GB/s over NVLink of an H100");
  }

  const Spread& spread(int rank_class, program::GroupId group) {
    const auto [known, fresh] = spreads_.try_emplace({rank_class, group});
    if (fresh) {
      const program::ProgramSet& set = classes_.set();
      const int rank = classes_.list()[rank_class].first_rank;
      std::vector<program::Spread>& of_ranks = by_rank_[group];
      if (of_ranks.empty()) of_ranks = program::spreads_of(set.groups[group], set.layout, network_.node_of);
      known->second = {of_ranks[rank]};
      for (const int member : set.groups[group].members(set.layout, set.layout.coordinates(rank)))
        known->second.network = std::min(known->second.network, condition_.network_of(member));
      require_links(known->second.most_on_a_node > 1, known->second.nodes > 1);
    }
    return known->second;
  }

  const RankClasses& classes_;
  const Device& device_;
  const Network& network_;
  const config::Calibration& calibration_;
  const config::Settings& settings_;
  const Condition& condition_;
  const bool host_paces_;
  double& largest_message_bytes_;
  int paced_class_ = -1;  // the class asked for last, with its costs below: requests come class by class
  std::vector<Cost> paced_;
  std::map<std::pair<program::Collective, Spread>, CollectiveTime> collectives_;
  std::map<std::pair<int, program::GroupId>, Spread> spreads_;
  std::map<program::GroupId, std::vector<program::Spread>> by_rank_;
  std::map<std::pair<program::Axis, int>, std::vector<int>> senders_;  // by axis and offset, by rank
};

}  // namespace

CostOf costs_of(const RankClasses& classes, const Device& device, const Network& network,
                const config::Calibration& calibration, const config::Settings& settings, const Condition& condition,
                double& largest_message_bytes) {
  return Costs(classes, device, network, calibration, settings, condition, largest_message_bytes);
}

}  // namespace harness::sim
