#pragma once

#include <string>

#include <nlohmann/json.hpp>
#include <remote/network.hpp>

#include "ui/terminal.hpp"

// The bandwidth between the servers, as `remote check --bandwidth` prints it.

namespace remote::cli {

// For a server: what stands under facts/network/bandwidth (docs/check/network.md).
nlohmann::json bandwidth_json(const Network& network, std::size_t server);
// Two matrices, Gbit/s and microseconds; for more than 12 servers the medians and the worst pairs.
std::string bandwidth_text(const Network& network, const ui::Terminal& terminal);
// A heat map as an SVG file that needs no other one; light or dark as the viewer is.
std::string bandwidth_svg(const Network& network);

}  // namespace remote::cli
