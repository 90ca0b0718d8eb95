#pragma once

#include <remote/error.hpp>

#include "cli/context.hpp"

namespace remote::cli {

// Adds `error` and `cause` to a server's JSON; both are null without an error.
void put_error(auto& entry, const std::optional<Error>& error) {
  entry["error"] = or_null(error);
  entry["cause"] = error ? nlohmann::json(to_string(error->cause())) : nlohmann::json(nullptr);
}

}  // namespace remote::cli
