#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "evidence/input.h"
#include "evidence/training_job.h"

namespace harness::evidence {
namespace {

// GPT-2 has GELU, layer norms, learned positions, biases and tied embeddings, Llama none of these.
struct KnownModel {
  std::string_view name;
  std::int64_t layers, hidden, heads, kv_heads, ffn, vocab, sequence;
  double rope_theta = 10000;  // 0: like GPT-2, else like Llama
  bool tied = false;
  std::int64_t head_width = 0;  // 0: hidden / heads
};
constexpr std::array<KnownModel, 30> known_models{{
    {"llama2-7b", 32, 4096, 32, 32, 11008, 32000, 4096},
    {"llama2-13b", 40, 5120, 40, 40, 13824, 32000, 4096},
    {"llama2-70b", 80, 8192, 64, 8, 28672, 32000, 4096},
    {"llama3-1b", 16, 2048, 32, 8, 8192, 128256, 8192, 500000, true},
    {"llama3-3b", 28, 3072, 24, 8, 8192, 128256, 8192, 500000, true},
    {"llama3-debugmodel", 6, 256, 16, 16, 768, 2048, 2048, 500000},  // from torchtitan
    {"mistral-7b", 32, 4096, 32, 8, 14336, 32000, 8192},
    {"qwen2.5-0.5b", 24, 896, 14, 2, 4864, 151936, 32768, 1e6, true},
    {"qwen2.5-1.5b", 28, 1536, 12, 2, 8960, 151936, 32768, 1e6, true},
    {"qwen2.5-3b", 36, 2048, 16, 2, 11008, 151936, 32768, 1e6, true},
    {"qwen2.5-7b", 28, 3584, 28, 4, 18944, 152064, 32768, 1e6},
    {"qwen2.5-14b", 48, 5120, 40, 8, 13824, 152064, 32768, 1e6},
    {"qwen2.5-32b", 64, 5120, 40, 8, 27648, 152064, 32768, 1e6},
    {"qwen2.5-72b", 80, 8192, 64, 8, 29568, 152064, 32768, 1e6},
    {"qwen3-0.6b", 28, 1024, 16, 8, 3072, 151936, 32768, 1e6, true, 128},
    {"qwen3-1.7b", 28, 2048, 16, 8, 6144, 151936, 32768, 1e6, true},
    {"qwen3-4b", 36, 2560, 32, 8, 9728, 151936, 32768, 1e6, true, 128},
    {"qwen3-8b", 36, 4096, 32, 8, 12288, 151936, 32768, 1e6},
    {"qwen3-14b", 40, 5120, 40, 8, 17408, 151936, 32768, 1e6},
    {"qwen3-32b", 64, 5120, 64, 8, 25600, 151936, 32768, 1e6, false, 128},
    {"gpt2", 12, 768, 12, 12, 3072, 50257, 1024, 0},
    {"gpt2-medium", 24, 1024, 16, 16, 4096, 50257, 1024, 0},
    {"gpt2-large", 36, 1280, 20, 20, 5120, 50257, 1024, 0},
    {"gpt2-xl", 48, 1600, 25, 25, 6400, 50257, 1024, 0},
    {"opt-1.3b", 24, 2048, 32, 32, 8192, 50272, 2048, 0},
    {"opt-2.7b", 32, 2560, 32, 32, 10240, 50272, 2048, 0},
    {"opt-6.7b", 32, 4096, 32, 32, 16384, 50272, 2048, 0},
    {"opt-13b", 40, 5120, 40, 40, 20480, 50272, 2048, 0},
    {"opt-30b", 48, 7168, 56, 56, 28672, 50272, 2048, 0},
    {"opt-66b", 64, 9216, 72, 72, 36864, 50272, 2048, 0},
}};

// "meta-llama/Llama-3.1-8B" becomes "llama3-8b": within a family, sizes differ and versions do not.
std::string plain_model_name(std::string_view name) {
  std::string words = lower(replaced(name.substr(name.rfind('/') + 1), {{'_', "-"}, {' ', "-"}}));
  std::string family;
  for (std::string_view word : split(words, '-')) {
    const bool size = word.size() > 1 && word.ends_with('b') && std::isdigit(static_cast<unsigned char>(word[0])) != 0;
    constexpr std::string_view families =  // Llama 1 has the sizes of Llama 2
        "llama3=llama3-|llama2=llama2-|metallama3=llama3-|metallama2=llama2-|llama=llama2-|mistral=mistral-|"
        "qwen25=qwen2.5-|qwen3=qwen3-|opt=opt-|gpt3=gpt3-";
    for (const std::string_view row : split(families, '|')) {
      const std::size_t equals = row.find('=');
      if (size && family.starts_with(row.substr(0, equals))) return fmt::format("{}{}", row.substr(equals + 1), word);
    }
    family += replaced(word, {{'.', ""}});
  }
  return words;
}

}  // namespace

bool take_model(TrainingJob& job, const std::string& name, const std::string& origin) {
  const std::string plain = plain_model_name(name);
  std::optional<config::Model> model = config::model_preset(plain);
  const auto known = std::ranges::find(known_models, std::string_view(plain), &KnownModel::name);
  if (!model && known != known_models.end()) {
    model = config::Model{.name = "",
                          .layers = known->layers,
                          .hidden = known->hidden,
                          .heads = known->heads,
                          .vocab = known->vocab,
                          .sequence = known->sequence,
                          .kv_heads = known->kv_heads,
                          .ffn = known->ffn};
    const bool gpt2 = known->rope_theta == 0;
    model->tied_embeddings = known->tied || gpt2;
    model->biases = gpt2;
    if (!gpt2) {
      model->activation = config::Activation::swiglu;
      model->norm = config::NormKind::rms_norm;
      model->positions = config::Positions::rotary;
      model->rope_theta = known->rope_theta;
    }
    if (known->head_width > 0) job.otherwise("head_dim", known->head_width, origin);
  }
  if (!model) {
    job.note("the sizes of {} are not known here: give its config.json as well, or --set layers=N and so on",
             quote(name));
    return false;
  }
  for (const auto& [key, value] : config::texts_of(model->resolved())) {
    if (key != "rope_theta" || model->positions == config::Positions::rotary)
      job.otherwise("model." + key, value, origin);
  }
  return true;
}

void take_defaults(TrainingJob& job, std::string_view values, const std::string& from, std::string_view section) {
  for (std::string_view word : words_of(values)) {
    const std::size_t equals = word.find('=');
    job.otherwise(fmt::format("{}{}", section, word.substr(0, equals)), std::string(word.substr(equals + 1)), from);
  }
}

config::Model model_of(const TrainingJob& job) {
  config::Model model;
  config::each_key(model, [&](const config::ModelKey& key, auto& value) {
    using Type = std::remove_cvref_t<decltype(value)>;
    const std::string name = fmt::format("model.{}", key.name), text = job.text(name);
    if (text.empty()) return;
    if constexpr (std::is_same_v<Type, std::int64_t>)
      value = job.number_or(name, 0);
    else if constexpr (std::is_same_v<Type, double>)
      value = as_number(text).value_or(0);
    else if constexpr (std::is_same_v<Type, bool>)
      value = text == "true";
    else
      value = config::parse_choice(text, config::words_for(value));
  });
  return model;
}

// Software and GPU determine the measured steps that a prediction is fitted to; "": any.
std::string calibration_of(const TrainingJob& job) {
  if (begins_with(job.text("hardware"), "a100|v100")) return "megatron-2022";
  if (job.framework.starts_with("megatron") || job.framework == "nemo" ||
      lower(job.theirs("distributed_type")) == "megatron_lm")
    return "megatron-2025";
  const bool torch = job.framework == "torchtitan" || job.framework == "llm-foundry" || job.framework == "accelerate";
  return torch ? "torch-fsdp" : "";
}

}  // namespace harness::evidence
