#include "cli/show/burn.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "cli/context.hpp"
#include "ui/table.hpp"

namespace remote::cli {
namespace {

nlohmann::json known(double number) {
  return number > 0 ? nlohmann::json(number) : nlohmann::json(nullptr);
}

}  // namespace

nlohmann::json to_json(const Burn& burn, const std::string& server) {
  auto devices = nlohmann::json::array();
  auto links = nlohmann::json::array();
  for (const BurnDevice& device : burn.devices) {
    if (device.server != server) {
      continue;
    }
    devices.push_back({{"rank", device.rank},
                       {"device", device.device},
                       {"type", device.type},
                       {"tflops", device.tflops},
                       {"promised_tflops", known(device.promised)},
                       {"slow", device.slow}});
    for (const BurnLink& link : burn.links) {
      if (link.from == device.rank) {
        links.push_back({{"from", link.from}, {"to", link.to}, {"gbit_s", link.gbit_s}, {"slow", link.slow}});
      }
    }
  }
  return {{"devices", devices},
          {"links", links},
          {"backend", or_null(burn.backend)},
          {"bus_gbit_s", known(burn.bus_gbit_s)},
          {"error", or_null(burn.error)}};
}

std::string burn_text(const Burn& burn, const ui::Terminal& terminal) {
  if (!burn.error.empty() || burn.devices.empty()) {
    return "";
  }
  ui::Table table(
      {{"RANK", true}, "SERVER", "DEVICE", "TYPE", {"TFLOP/S", true}, {"OF", true}, {"LINK GBIT/S", true}});
  for (const BurnDevice& device : burn.devices) {
    const auto link = std::ranges::find(burn.links, device.rank, &BurnLink::from);
    const ui::Style style = device.slow ? ui::Style::yellow : ui::Style::plain;
    const bool has_link = link != burn.links.end();
    table.add({std::to_string(device.rank), ui::Cell(device.server, ui::Style::cyan), device.device,
               device.type, ui::Cell(fmt::format("{:.3g}{}", device.tflops, device.slow ? "!" : ""), style),
               device.promised > 0 ? fmt::format("{:g}", device.promised) : "",
               has_link ? ui::Cell(fmt::format("{:.3g}{}", link->gbit_s, link->slow ? "!" : ""),
                                   link->slow ? ui::Style::yellow : ui::Style::plain)
                        : ui::Cell("")});
  }
  std::string text = "\n" + table.text(terminal);
  if (burn.bus_gbit_s > 0) {
    text += fmt::format(
        "\nall-reduce over {} ranks with {}: {:.3g} Gbit/s bus bandwidth; a link is to the next rank\n",
        burn.devices.size(), backend_words(burn), burn.bus_gbit_s);
  }
  return text;
}

}  // namespace remote::cli
