#include "cli/show/bandwidth.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/strings.hpp"
#include "cli/context.hpp"
#include "ui/table.hpp"

namespace remote::cli {
namespace {

constexpr std::size_t most_in_matrix = 12;  // with ten, it still fits in 80 columns
constexpr std::size_t most_worst = 10;

std::string speed_text(double gbit_s) {
  return gbit_s >= 100 ? fmt::format("{:.0f}", gbit_s) : fmt::format("{:.3g}", gbit_s);
}

nlohmann::json flow_json(const Network& network, const Flow& flow) {
  return {{"to", network.servers[flow.to].server},
          {"gbit_s", flow.error.empty() ? nlohmann::json(flow.gbit_s) : nlohmann::json(nullptr)},
          {"latency_us",
           flow.latency.count() > 0 ? nlohmann::json(flow.latency.count()) : nlohmann::json(nullptr)},
          {"method", or_null(flow.method)},
          {"outlier", flow.outlier},
          {"error", or_null(flow.error)}};
}

// A matrix with the text of `cell` for each flow. Columns are numbered; each row starts with its number and
// name.
template <typename Cell>
std::string matrix(const Network& network, const std::string& title, const ui::Terminal& terminal,
                   const Cell& cell) {
  std::vector<ui::Column> columns{title};
  for (std::size_t to = 0; to < network.servers.size(); ++to) {
    columns.emplace_back(std::to_string(to + 1), true);
  }
  ui::Table table(std::move(columns));
  for (std::size_t from = 0; from < network.servers.size(); ++from) {
    std::vector<ui::Cell> row;
    row.emplace_back(ui::shorten(fmt::format("{} {}", from + 1, network.servers[from].server), 16),
                     ui::Style::cyan);
    for (std::size_t to = 0; to < network.servers.size(); ++to) {
      const Flow* flow = network.bandwidth->flow(from, to);
      row.push_back(flow == nullptr        ? ui::Cell(from == to ? "" : "-", ui::Style::dim)
                    : !flow->error.empty() ? ui::Cell("?", ui::Style::red)
                                           : cell(*flow));
    }
    table.add(std::move(row));
  }
  return table.text(terminal);
}

std::string worst_rows(const Network& network, const ui::Terminal& terminal) {
  std::vector<const Flow*> flows;
  for (const Flow& flow : network.bandwidth->flows) {
    if (flow.error.empty()) {
      flows.push_back(&flow);
    }
  }
  std::ranges::stable_sort(flows, {}, &Flow::gbit_s);
  flows.resize(std::min(flows.size(), most_worst));
  ui::Table table({"SLOWEST FROM", "TO", {"GBIT/S", true}, {"µS", true}});
  for (const Flow* flow : flows) {
    const ui::Style style = flow->outlier ? ui::Style::yellow : ui::Style::plain;
    table.add({ui::Cell(network.servers[flow->from].server, ui::Style::cyan),
               network.servers[flow->to].server,
               ui::Cell(speed_text(flow->gbit_s) + (flow->outlier ? "!" : ""), style),
               fmt::format("{:.0f}", flow->latency.count())});
  }
  return table.text(terminal);
}

// Lists the servers without measurements, one per line.
std::string left_out(const Network& network) {
  std::string text;
  for (std::size_t from = 0; from < network.servers.size(); ++from) {
    const NetworkServer& server = network.servers[from];
    if (std::ranges::find(network.bandwidth->flows, from, &Flow::from) == network.bandwidth->flows.end()) {
      text +=
          fmt::format("{} was not measured: {}\n", server.server,
                      visible_line(server.skipped.empty() ? "it reaches no other server" : server.skipped));
    }
  }
  return text;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

constexpr const char* svg_style = R"(<style>
text { font: 12px system-ui, sans-serif; fill: #1f2328; }
.back { fill: #ffffff; }
.note { fill: #59636e; }
.cell { fill: #0969da; }
.none { fill: #d1d9e0; fill-opacity: 0.4; }
.slow { stroke: #bc4c00; stroke-width: 2; }
.strong { fill: #ffffff; }
.mid { text-anchor: middle; }
.end { text-anchor: end; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .back { fill: #0d1117; }
  .note { fill: #9198a1; }
  .cell { fill: #58a6ff; }
  .none { fill: #3d444d; }
  .slow { stroke: #f0883e; }
  .strong { fill: #0d1117; }
}
</style>
)";

struct Square {
  double x = 0;
  double y = 0;
  double size = 0;
};

// A cell of the heat map: more Gbit/s, stronger color.
std::string svg_cell(const Network& network, std::size_t from, std::size_t to, const Square& square,
                     double most) {
  const auto [x, y, size] = square;
  const Flow* flow = network.bandwidth->flow(from, to);
  const double inner = size - 2;
  if (flow == nullptr || !flow->error.empty()) {
    return fmt::format(
        R"(<rect class="none" x="{}" y="{}" width="{}" height="{}"><title>{} → {}: {}</title></rect>)"
        "\n",
        x, y, inner, inner, escaped(network.servers[from].server), escaped(network.servers[to].server),
        from == to ? "itself" : escaped(flow == nullptr ? "not measured" : flow->error));
  }
  const double strength = most > 0 ? 0.08 + 0.92 * flow->gbit_s / most : 0;
  std::string text = fmt::format(
      R"(<rect class="cell{}" fill-opacity="{:.2f}" x="{}" y="{}" width="{}" height="{}"><title>{} → {}: {} Gbit/s, {:.0f} µs</title></rect>)"
      "\n",
      flow->outlier ? " slow" : "", strength, x, y, inner, inner, escaped(network.servers[from].server),
      escaped(network.servers[to].server), speed_text(flow->gbit_s), flow->latency.count());
  if (size >= 36) {
    text += fmt::format(R"(<text class="mid{}" x="{}" y="{}">{}</text>)"
                        "\n",
                        strength > 0.6 ? " strong" : "", x + inner / 2, y + inner / 2 + 4,
                        speed_text(flow->gbit_s));
  }
  return text;
}

}  // namespace

nlohmann::json bandwidth_json(const Network& network, std::size_t server) {
  auto flows = nlohmann::json::array();
  for (const Flow& flow : network.bandwidth->flows) {
    if (flow.from == server) {
      flows.push_back(flow_json(network, flow));
    }
  }
  nlohmann::json at_once = nullptr;
  for (const Flow& flow : network.bandwidth->at_once) {
    if (flow.from == server) {
      at_once = flow_json(network, flow);
    }
  }
  return {{"to", flows},
          {"at_once", at_once},
          {"median_gbit_s", network.bandwidth->median_gbit_s},
          {"total_at_once_gbit_s", network.bandwidth->total_gbit_s}};
}

std::string bandwidth_text(const Network& network, const ui::Terminal& terminal) {
  const Bandwidth& bandwidth = *network.bandwidth;
  if (bandwidth.flows.empty()) {
    return "\nno bandwidth was measured\n" + left_out(network);
  }
  std::string text = "\n";
  if (network.servers.size() <= most_in_matrix) {
    text += matrix(network, "GBIT/S FROM, TO", terminal, [](const Flow& flow) {
      return flow.outlier ? ui::Cell(speed_text(flow.gbit_s) + "!", ui::Style::yellow)
                          : ui::Cell(speed_text(flow.gbit_s));
    });
    text += "\n" + matrix(network, "µS FROM, TO", terminal, [](const Flow& flow) {
              return ui::Cell(fmt::format("{:.0f}", flow.latency.count()));
            });
  } else {
    text += worst_rows(network, terminal);
  }
  const auto slow = std::ranges::count(bandwidth.flows, true, &Flow::outlier);
  text += fmt::format("\nmedian {} Gbit/s{}; all at once {} Gbit/s together, measured with {}\n",
                      speed_text(bandwidth.median_gbit_s),
                      slow > 0 ? fmt::format(", {} under 70 % of it (!)", slow) : "",
                      speed_text(bandwidth.total_gbit_s),
                      std::ranges::find(bandwidth.flows, "own", &Flow::method) == bandwidth.flows.end()
                          ? "iperf3"
                          : "remote's own sender, if iperf3 is missing");
  return text + left_out(network);
}

std::string bandwidth_svg(const Network& network) {
  const std::size_t count = network.servers.size();
  const double size = count <= 16 ? 44 : count <= 32 ? 22 : 12;
  const double font_room = count <= 32 ? 0 : 4;  // smaller font for the names of small rows
  std::size_t longest = 0;
  double most = 0;
  for (const NetworkServer& server : network.servers) {
    longest = std::max(longest, server.server.size());
  }
  for (const Flow& flow : network.bandwidth->flows) {
    most = std::max(most, flow.gbit_s);
  }
  const double left = 24 + 7.2 * static_cast<double>(std::min<std::size_t>(longest, 24));
  const double top = 64 + left;
  const double width = std::max(left + size * static_cast<double>(count) + 20, 580.0);
  const double height = top + size * static_cast<double>(count) + 40;
  std::string text = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img">
<title>Gbit/s between the servers</title>
{2}<rect class="back" width="100%" height="100%"/>
<text x="16" y="26" style="font-size:15px;font-weight:600">Gbit/s from each server (row) to each other (column)</text>
<text class="note" x="16" y="46">median {3}, most {4}; all at once {5} together; framed: under 70 % of the median</text>
)",
      width, height, svg_style, speed_text(network.bandwidth->median_gbit_s), speed_text(most),
      speed_text(network.bandwidth->total_gbit_s));
  for (std::size_t i = 0; i < count; ++i) {
    const double at = size * static_cast<double>(i) + size / 2;
    const std::string name = escaped(ui::shorten(network.servers[i].server, 24));
    text += fmt::format(R"(<text class="end" style="font-size:{}px" x="{}" y="{}">{}</text>)"
                        "\n",
                        12 - font_room, left - 8, top + at + 3, name);
    text += fmt::format(R"x(<text style="font-size:{}px" transform="translate({} {}) rotate(-60)">{}</text>)x"
                        "\n",
                        12 - font_room, left + at + 3, top - 8, name);
    for (std::size_t to = 0; to < count; ++to) {
      text +=
          svg_cell(network, i, to, {left + size * static_cast<double>(to), top + at - size / 2, size}, most);
    }
  }
  return text + "</svg>\n";
}

}  // namespace remote::cli
