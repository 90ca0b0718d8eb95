#pragma once

#include <string>

#include <nlohmann/json.hpp>
#include <remote/network.hpp>

#include "ui/terminal.hpp"

// Output of `remote check --bandwidth`.

namespace remote::cli {

// The value of facts/network/bandwidth for a server (docs/check/network.md).
nlohmann::json bandwidth_json(const Network& network, std::size_t server);
// Two matrices, in Gbit/s and microseconds; for more than 12 servers the medians and the worst pairs.
std::string bandwidth_text(const Network& network, const ui::Terminal& terminal);
// A heat map as a self-contained SVG file that follows the viewer's light or dark mode.
std::string bandwidth_svg(const Network& network);

}  // namespace remote::cli
