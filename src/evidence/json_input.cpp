#include "evidence/json_input.h"

#include "base/error.h"
#include "evidence/lines.h"

namespace harness::evidence {

Json parse_json(const std::string& text, std::string_view skipped) {
  constexpr int deepest = 64;
  constexpr std::size_t most_values = 1'000'000;
  std::size_t values = 0;
  const auto keep = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > deepest) fail("it is nested more than {} levels deep", deepest);
    if (++values > most_values) fail("it holds more than a million values");
    return event != Json::parse_event_t::key || skipped.empty() || value != skipped;
  };
  try {
    return Json::parse(text, keep);
  } catch (const Json::parse_error& error) {
    fail("it is no JSON from byte {} on", error.byte);
  } catch (const Json::exception&) {
    fail("it holds a number that no computer keeps");
  }
}

const Json& at(const Json& object, const char* key) {
  static const Json none;
  if (!object.is_object()) return none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

std::string text_at(const Json& object, const char* key) {
  const Json& value = at(object, key);
  if (value.is_string()) return value.get<std::string>();
  return value.is_number() || value.is_boolean() ? value.dump() : std::string();
}

double number_at(const Json& object, const char* key, double otherwise) {
  const Json& value = at(object, key);
  if (value.is_number()) return value.get<double>();
  return value.is_string() ? as_number(value.get_ref<const std::string&>()).value_or(otherwise) : otherwise;
}

}  // namespace harness::evidence
