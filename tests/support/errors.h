#pragma once

#include <exception>
#include <string>

#include "base/text.h"

namespace harness::test {

/// Returns the message of the Error that the action throws; "" if it throws none.
template <class Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// Returns the message of an exception caught earlier, of any type.
inline std::string message_of(const std::exception_ptr& caught) {
  try {
    if (caught) std::rethrow_exception(caught);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

template <class E>
bool is(const std::exception_ptr& caught) {
  try {
    if (caught) std::rethrow_exception(caught);
  } catch (const E&) {
    return true;
  } catch (...) {
  }
  return false;
}

}  // namespace harness::test
