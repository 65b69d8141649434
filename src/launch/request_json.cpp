#include <nlohmann/json.hpp>

#include "base/error.h"
#include "config/registry.h"
#include "launch/messages.h"

namespace harness {
namespace {

using Json = nlohmann::json;

Json to_json(const BlockRequest& r) {
  Json settings = Json::object();
  for (const Variable& variable : registry()) settings[variable.name] = variable.print(r.settings);
  return {
      {"case", r.case_name},
      {"backend", static_cast<int>(r.backend)},
      {"model",
       {{"name", r.model.name},
        {"layers", r.model.layers},
        {"hidden", r.model.hidden},
        {"heads", r.model.heads},
        {"vocab", r.model.vocab},
        {"sequence", r.model.sequence}}},
      {"settings", std::move(settings)},
      {"layout", r.layout.size},
      {"mode", static_cast<int>(r.mode)},
      {"warmup_steps", r.warmup_steps},
      {"steps", r.steps},
      {"seed", r.seed},
      {"deadlines", {{"start_s", r.deadlines.start_s}, {"step_s", r.deadlines.step_s}}},
      {"memory_limit_bytes", r.memory_limit_bytes},
      {"tuning", r.tuning},
      {"wrap", r.wrap},
      {"share_gpus", r.share_gpus},
      {"environment", r.environment},
  };
}

BlockRequest request_from(const Json& json) {
  BlockRequest r;
  r.case_name = json.at("case").get<std::string>();
  r.backend = static_cast<BackendKind>(json.at("backend").get<int>());
  const Json& model = json.at("model");
  r.model.name = model.at("name").get<std::string>();
  r.model.layers = model.at("layers").get<std::int64_t>();
  r.model.hidden = model.at("hidden").get<std::int64_t>();
  r.model.heads = model.at("heads").get<std::int64_t>();
  r.model.vocab = model.at("vocab").get<std::int64_t>();
  r.model.sequence = model.at("sequence").get<std::int64_t>();
  for (const auto& [name, value] : json.at("settings").items()) {
    const Variable* variable = find_variable(name);
    if (variable == nullptr) fail("a block's settings name '{}', which is no variable of this program", name);
    variable->parse(r.settings, value.get<std::string>());
  }
  r.layout.size = json.at("layout").get<decltype(r.layout.size)>();
  r.mode = static_cast<BlockMode>(json.at("mode").get<int>());
  r.warmup_steps = json.at("warmup_steps").get<int>();
  r.steps = json.at("steps").get<int>();
  r.seed = json.at("seed").get<std::uint64_t>();
  r.deadlines.start_s = json.at("deadlines").at("start_s").get<double>();
  r.deadlines.step_s = json.at("deadlines").at("step_s").get<double>();
  r.memory_limit_bytes = json.at("memory_limit_bytes").get<double>();
  r.share_gpus = json.at("share_gpus").get<bool>();
  r.tuning = json.at("tuning").get<decltype(r.tuning)>();
  r.wrap = json.at("wrap").get<std::string>();
  r.environment = json.at("environment").get<decltype(r.environment)>();
  return r;
}

// An environment may hold bytes that are no UTF-8; better a replacement character than a sweep that cannot start.
std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <class Function>
auto parsed(std::string_view text, Function&& function) {
  try {
    return function(Json::parse(text));
  } catch (const Json::exception& e) {
    fail("a block request could not be read: {}", e.what());
  }
}

}  // namespace

std::string encode(const BlockRequest& request) {
  std::string text = text_of(to_json(request));
  // Settings travel as registry text. A field that no variable prints would silently be its default in the workers.
  if (decode_request(text).settings != request.settings) {
    fail(
        "case {}: its settings cannot be told to the workers: a variable of the registry does not print what it "
        "parses, or a setting has no variable",
        request.case_name);
  }
  return text;
}

BlockRequest decode_request(std::string_view text) {
  return parsed(text, request_from);
}

std::string encode(const WorkerOrder& order) {
  return text_of({{"request", to_json(order.request)},
                  {"rank", order.rank},
                  {"threads", order.threads},
                  {"memory_limit_bytes", order.memory_limit_bytes},
                  {"local_rank", order.local_rank},
                  {"local_ranks", order.local_ranks}});
}

WorkerOrder decode_order(std::string_view text) {
  return parsed(text, [](const Json& json) {
    WorkerOrder order;
    order.request = request_from(json.at("request"));
    order.rank = json.at("rank").get<int>();
    order.threads = json.at("threads").get<int>();
    order.memory_limit_bytes = json.at("memory_limit_bytes").get<double>();
    order.local_rank = json.at("local_rank").get<int>();
    order.local_ranks = json.at("local_ranks").get<int>();
    return order;
  });
}

}  // namespace harness
