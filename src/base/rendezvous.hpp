#pragma once

#include <optional>
#include <string_view>

#include "base/strings.hpp"

// The words of torchrun's options, as the command line and `launch:` of configs.yaml have them.

namespace remote {

struct NodeRange {
  int least = 1;
  int most = 1;
};

// "2" or "1:4"; nullopt for anything else.
inline std::optional<NodeRange> parse_node_range(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto least = parse_number<int>(text.substr(0, colon));
  const auto most = parse_number<int>(colon == std::string_view::npos ? text : text.substr(colon + 1));
  if (!least || !most || *least < 1 || *most < *least) {
    return std::nullopt;
  }
  return NodeRange{*least, *most};
}

inline bool is_rendezvous(std::string_view name) {
  return name == "static" || name == "c10d";
}

}  // namespace remote
