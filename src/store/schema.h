#pragma once

namespace harness::store {

inline constexpr const char* schema_name = "harness-result";
inline constexpr int schema_version = 3;  // a reader refuses newer ones; new columns alone do not make a new version

}  // namespace harness::store
